package kernels

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"weft/abi"
)

// BenchmarkReduce gives input bytes per second of two sources, inside the second cache and beyond it, each beside a copy
// in the same moments; of many short turns the best, since the machine may be shared.
func BenchmarkReduce(b *testing.B) {
	for _, bytes := range []int{96 << 10, 32 << 20} {
		srcs := [][]byte{numbers(rand.New(rand.NewPCG(1, 1)), float16, bytes/2), numbers(rand.New(rand.NewPCG(2, 2)), bfloat16, bytes/2)}
		dst := make([]byte, bytes)
		var pins runtime.Pinner
		pins.Pin(&srcs[0][0])
		pins.Pin(&srcs[1][0])
		all := []unsafe.Pointer{unsafe.Pointer(&srcs[0][0]), unsafe.Pointer(&srcs[1][0])}
		for of := range abi.NumTypes {
			for _, op := range ops {
				b.Run(fmt.Sprintf("%dK/type%d/op%d", bytes>>10, of, op), func(b *testing.B) {
					reduced, copied := time.Hour, time.Hour
					for range b.N {
						reduced = min(reduced, took(func() {
							if err := Reduce(unsafe.Pointer(&dst[0]), false, all, false, bytes/Size(of), of, op); err != nil {
								b.Fatal(err)
							}
						}))
						copied = min(copied, took(func() { copy(dst, srcs[0]) }))
					}
					b.ReportMetric(2*float64(bytes)/reduced.Seconds()/1e9, "GB/s")
					b.ReportMetric(2*copied.Seconds()/reduced.Seconds(), "of-a-copy")
				})
			}
		}
		pins.Unpin()
	}
}

func took(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}
