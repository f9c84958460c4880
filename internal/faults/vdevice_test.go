package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// fuse joins devices through the table and lets p's connections run on the result.
func (p *peer) fuse(devs ...int) (int, error) {
	r, err := p.h.Call("main", "net.makeVDevice", host.Args{"on", p.n.As, "devs", devs, "n", len(devs), "d", -7})
	if err != nil {
		return 0, err
	}
	p.dev = int(r.Int("d"))
	return p.dev, nil
}

// TestFusedDevices makes one device of two through every table that can, on
// both sides or on one, and moves data through it:
//
//	           +- sim0 --- 10.9.1.0/24 --- sim2 -+
//	host left -+                                 +- host right
//	           +- sim1 --- 10.9.2.0/24 --- sim3 -+
func TestFusedDevices(t *testing.T) {
	dist, err := simverbs.Dist()
	must(t, err, "simverbs")
	for version := 9; version <= 12; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, dist: dist, World: simverbs.World{Name: fmt.Sprintf("fused-%d-%d", version, os.Getpid())}}
			for i, gid := range []string{"10.9.1.1/24", "10.9.2.1/24", "10.9.1.2/24", "10.9.2.2/24"} {
				w.Devices = append(w.Devices, simverbs.Device{Name: fmt.Sprint("sim", i), Node: []string{"left", "right"}[i/2], GIDs: []string{gid}, Speed: 100_000})
			}
			t.Cleanup(func() {
				if err := w.Remove(); err != nil {
					t.Error(err)
				}
			})
			a, b := w.start("left", version), w.start("right", version)
			before := w.count(a)
			for i, p := range []*peer{a, b} {
				if n, err := p.n.Devices(); err != nil || n != 2 {
					t.Fatalf("%d devices, %v", n, err)
				}
				for _, bad := range [][]int{{}, {0, 0}, {0, 2}, {0, 1, 0, 1, 0}} {
					if d, err := p.fuse(bad...); host.Code(err) != host.InvalidUsage {
						t.Errorf("device %d of %v: %v", d, bad, err)
					}
				}
				d, err := p.fuse(0, 1)
				if n, _ := p.n.Devices(); err != nil || d != 2 || n != 3 {
					t.Fatalf("device %d of %d, %v", d, n, err)
				}
				x, err := p.n.Props(2)
				must(t, err, "getProperties")
				if name := fmt.Sprintf("sim%d+sim%d", 2*i, 2*i+1); x.Name != name || x.Speed != 200_000 || x.RegIsGlobal != 1 || x.NVDevs != 2 || !slices.Equal(x.VDevs[:2], []int64{0, 1}) {
					t.Errorf("%+v", x)
				}
			}
			for _, dev := range []int{2, 1} { // the other side fused too, or one device of it
				b.dev = dev
				mark := marked(a)
				c := join(a, b, 4<<20)
				for _, size := range []int64{8, 100_000, 1 << 20} {
					c.move(traffic{size: size, count: 50, window: 4})
				}
				if byRDMA(a, mark) != 1 {
					t.Errorf("%q", said(a, mark))
				}
				if both := len(slices.DeleteFunc(said(a, mark), func(l string) bool { return !strings.Contains(l, "over sim0") || !strings.Contains(l, ", sim1") })); both != map[int]int{2: 1, 1: 0}[dev] {
					t.Errorf("%q", said(a, mark))
				}
				must(t, a.n.CloseSend(c.send), "closeSend")
				must(t, b.n.CloseRecv(c.recv), "closeRecv")
			}
			w.atRest(a, before, "after closing")
		})
	}
}
