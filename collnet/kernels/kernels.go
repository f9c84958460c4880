// Package kernels reduces buffers element by element: every type and operation
// of NCCL, in C that the compiler vectorises. Types of 8 and 16 bits are
// accumulated in float and rounded once. What a result is stands in kernels.h;
// it is the same on every CPU, at every place of a buffer.
package kernels

/*
#cgo CFLAGS: -std=c11 -O3 -Wall -Wextra
#include "kernels.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"weft/abi"
)

// sizes are the bytes of an element and of its accumulator.
var sizes = [abi.NumTypes]struct{ element, acc int }{
	abi.Int8: {1, 1}, abi.Uint8: {1, 1},
	abi.Int32: {4, 4}, abi.Uint32: {4, 4},
	abi.Int64: {8, 8}, abi.Uint64: {8, 8},
	abi.Float16: {2, 4}, abi.Bfloat16: {2, 4},
	abi.Float32: {4, 4}, abi.Float64: {8, 8},
	abi.Float8e4m3: {1, 4}, abi.Float8e5m2: {1, 4},
}

// Size is the bytes of an element; 0 of a type that NCCL does not have.
func Size(t abi.DataType) int {
	if t >= abi.NumTypes {
		return 0
	}
	return sizes[t].element
}

// AccSize is the bytes of an element of the accumulator's type: float for types
// of 8 and 16 bits that are not integers, the type itself for all others.
func AccSize(t abi.DataType) int {
	if t >= abi.NumTypes {
		return 0
	}
	return sizes[t].acc
}

// Supported reports whether Reduce knows the operation of the type: sum, prod,
// max and min of all types. Averages reach a plugin as sums.
func Supported(t abi.DataType, op abi.RedOp) bool { return t < abi.NumTypes && op <= abi.Min }

// kind is a kind of CPU, which decides how the types of 8 and 16 bits are reduced.
type kind struct{ c *C.struct_wf_cpu }

func (k kind) String() string { return C.GoString(k.c.name) }

// kinds are those that this CPU is, the best first.
var kinds = func() (all []kind) {
	for i := C.int(0); ; i++ {
		c := C.wf_cpus(i)
		if c == nil {
			return all
		}
		all = append(all, kind{c})
	}
}()

// Reduce reduces sources of count elements in their order. dstAcc says that dst
// is of the accumulator's type, srcAcc that all sources are. dst may be one of
// the sources where both are of one type, else it is apart from them. No buffer
// needs to be aligned; one of Go's memory is pinned.
func Reduce(dst unsafe.Pointer, dstAcc bool, srcs []unsafe.Pointer, srcAcc bool, count int, t abi.DataType, op abi.RedOp) error {
	return kinds[0].reduce(dst, dstAcc, srcs, srcAcc, count, t, op)
}

func (k kind) reduce(dst unsafe.Pointer, dstAcc bool, srcs []unsafe.Pointer, srcAcc bool, count int, t abi.DataType, op abi.RedOp) error {
	switch {
	case !Supported(t, op):
		return fmt.Errorf("kernels: no reduction %d of type %d", op, t)
	case count < 0 || len(srcs) == 0:
		return fmt.Errorf("kernels: reduce %d elements of %d sources", count, len(srcs))
	}
	C.wf_reduce(k.c, C.uint(t), C.uint(op), dst, number(dstAcc), unsafe.SliceData(srcs), C.size_t(len(srcs)), number(srcAcc), C.size_t(count))
	return nil
}

func number(is bool) C.int {
	if is {
		return 1
	}
	return 0
}
