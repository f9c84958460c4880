package faults

import (
	"fmt"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestLivesLeaveNothing has two processes connect, move data and close many times: from the first lives on they
// have no more queue pairs, registrations, files and threads, whether another connection stays or none, and
// whatever carries them.
func TestLivesLeaveNothing(t *testing.T) {
	t.Parallel()
	lives := setting("WEFT_TEST_LIVES", 40)
	for _, over := range []string{"tcp", "device", "fused device"} {
		for _, stays := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_another_stays_%v", over, stays), func(t *testing.T) {
				t.Parallel()
				var b *bond
				switch over {
				case "fused device":
					w := newFusedWorld(t, newest, 2)
					b = &bond{w: w, tx: w.end(w.start("left", newest)), rx: w.end(w.start("right", newest))}
					for _, e := range []*end{b.tx, b.rx} {
						_, err := e.fuse(0, 1)
						must(t, err, "makeVDevice")
					}
				default:
					w := newWorld(t, simverbs.Device{}, simverbs.Device{})
					var env []string
					if over == "tcp" {
						env = append(env, "NCCL_IB_DISABLE=1")
					}
					b = w.bond(env...)
				}
				if stays {
					_, _, ok := b.connect(patience, func(_ *end, what string, err error) bool {
						if err != nil {
							t.Errorf("%s: %v", what, err)
						}
						return err != nil
					})
					if !ok {
						t.FailNow()
					}
				}
				live := func(n int) {
					for range n {
						for _, e := range b.life(patience) {
							t.Fatal(e)
						}
					}
				}
				has := func(e *end) (o simverbs.Objects, s host.Stat) {
					if over != "tcp" { // no card is open otherwise
						o = b.w.count(e.peer)
					}
					s, err := e.h.Stat()
					must(t, err, "stat")
					return o, s
				}
				live(lives / 4)
				type held struct {
					simverbs.Objects
					host.Stat
				}
				first := map[*end]held{}
				for _, e := range []*end{b.tx, b.rx} {
					o, s := has(e)
					first[e] = held{o, s}
				}
				for range 3 {
					live(lives / 4)
				}
				for e, f := range first {
					settle(t, fmt.Sprintf("after %d lives more than after the first: %+v", lives, f), func() (string, bool) {
						o, s := has(e)
						return fmt.Sprintf("%+v, %+v", o, s), o.QPs <= f.QPs+slack && o.CQs <= f.CQs+slack && o.MRs <= f.MRs+slack && s.FDs <= f.FDs+slack && s.Threads <= f.Threads+slack
					})
				}
				if rdma := byRDMA(b.tx.peer, 0); (rdma == 0) != (over == "tcp") {
					t.Errorf("%d comms by RDMA", rdma)
				}
			})
		}
	}
}

// slack is what may be added once, after the first lives: a thread that Go starts later, a pooled queue pair that came
// back after the next life had made its own. What each life leaves is more than that.
const slack = 4
