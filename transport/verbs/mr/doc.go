// Package mr registers memory with cards: in which protection domain, each range
// once, in which way card, library and kernel take it, and what they reach of a
// GPU's.
package mr
