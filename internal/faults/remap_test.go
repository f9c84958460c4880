package faults

import (
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestPartOutlivesTheWhole registers memory and a part of it, deregisters the whole,
// puts other memory where the rest was and registers that: whatever then arrives lies
// where the host reads it, and the part serves on.
func TestPartOutlivesTheWhole(t *testing.T) {
	t.Parallel()
	const page = 4096
	for _, over := range []string{"TCP", "RDMA"} {
		for _, again := range []struct {
			what     string
			from, to int64 // pages that are registered anew
		}{{"the rest", 1, 8}, {"some of the rest", 3, 5}, {"all", 0, 8}} {
			t.Run(over+", "+again.what, func(t *testing.T) {
				t.Parallel()
				var tx, rx *peer
				if over == "RDMA" {
					w := newWorld(t, simverbs.Device{}, simverbs.Device{})
					tx, rx = w.start("simA", newest), w.start("simB", newest)
				} else {
					tx, rx = start(t, "sender", newest), start(t, "receiver", newest)
				}
				c := join(tx, rx, page)
				big, err := rx.h.Alloc(8*page, "guard", 1)
				must(t, err, "alloc")
				reg := func(from, to int64) host.Ptr {
					mh, err := rx.n.RegMr(c.recv, big+host.Ptr(from*page), (to-from)*page)
					must(t, err, "regMr")
					return mh
				}
				whole, part := reg(0, 8), reg(0, 1)
				must(t, rx.n.DeregMr(c.recv, whole), "deregMr of the whole")
				must(t, rx.h.Remap(big+page, 7*page), "remap")
				anew := reg(again.from, again.to)
				for i, at := range []struct {
					page int64
					mh   host.Ptr
				}{{0, part}, {again.to - 1, anew}, {again.from, anew}, {0, part}} {
					c.b, c.bmh = big+host.Ptr(at.page*page), at.mh
					c.early(i, page)
				}
				must(t, rx.n.DeregMr(c.recv, part), "deregMr of the part")
				c.b, c.bmh = big+host.Ptr(again.from*page), anew
				c.early(5, page)
				must(t, rx.n.DeregMr(c.recv, anew), "deregMr")
				must(t, rx.h.Check(c.b, page, uint64(5000)+uint64(c.recv)), "what arrived, with no registration left")
			})
		}
	}
}
