package collnet

import (
	"testing"
	"time"

	"weft/collnet/choose"
	"weft/collnet/schedule"
)

// mostScratch bounds what a track takes, in chunks, as docs/collnet.md has it.
func mostScratch(ranks int) int64 {
	if ranks > 64 { // by halving: partial sums of 8-bit types are four times as wide
		return 16 // a power of two, as scratch memory grows
	}
	return 4
}

// TestScratchIsBounded looks at the plans of many operations over many networks.
func TestScratchIsBounded(t *testing.T) {
	const chunk = 512 << 10
	most := int64(0)
	for _, n := range []int{2, 3, 4, 6, 8, 16, 17, 64, 65, 128, 1000, 1024} {
		for _, path := range []choose.Path{{Latency: time.Microsecond, Bandwidth: 50e9}, {Latency: 30 * time.Microsecond, Bandwidth: 5e9}, {Latency: time.Millisecond, Bandwidth: 1e8}} {
			choices := choose.Of(choose.Fabric{N: n, Path: path})
			for _, size := range []struct{ elem, acc int }{{1, 1}, {1, 4}, {2, 4}, {8, 8}} {
				for kind := schedule.AllReduce; kind <= schedule.ReduceScatter; kind++ {
					for count := int64(1); count < 1<<26; count = count*5 + 3 {
						op := schedule.Op{Kind: kind, N: n, Count: count, Elem: size.elem, Acc: size.acc}
						algorithm, order := choices.Pick(op)
						for _, c := range schedule.Chunks(op, algorithm, chunk)[:1] {
							p, err := schedule.Make(op, algorithm, order, c)
							if err != nil {
								t.Fatal(err)
							}
							if p.Scratch > mostScratch(n)*chunk {
								t.Errorf("%v of %d ranks by %v, %d elements of %d bytes: %d KiB of scratch memory", kind, n, algorithm, count, size.elem, p.Scratch>>10)
							}
							most = max(most, p.Scratch)
						}
					}
				}
			}
		}
	}
	t.Logf("at most %d KiB, for chunks of %d", most>>10, chunk>>10)
}
