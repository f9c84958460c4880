// Package kernels reduces buffers element by element: every type and operation
// of NCCL, in C that the compiler vectorises, and in a few intrinsics where it
// cannot. Sums and products of types of 8 and 16 bits are accumulated in float
// and rounded once.
package kernels
