// Package collnet implements the collNet tables. Today it refuses: the tables,
// their shims and their layouts are complete, and the host goes on without
// collective offload.
package collnet
