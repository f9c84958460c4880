// Package link builds the library, the C host and the second Go library that tests load beside ours; no other place knows how they are linked.
package link
