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
	d, err := p.n.MakeVDevice(devs)
	if err == nil {
		p.dev = d
	}
	return d, err
}

// newFusedWorld has two hosts that so many cables join, each a subnet of its own:
//
//	           +- sim0 --- 10.9.1.0/24 --- sim2 -+
//	host left -+                                 +- host right
//	           +- sim1 --- 10.9.2.0/24 --- sim3 -+
func newFusedWorld(t *testing.T, version, cables int) *world {
	dist, err := simverbs.Dist()
	must(t, err, "simverbs")
	w := &world{t: t, dist: dist, World: simverbs.World{Name: fmt.Sprintf("fused-%d-%d-%d-%d", version, cables, os.Getpid(), worlds.Add(1))}}
	for host, node := range []string{"left", "right"} {
		for i := range cables {
			w.Devices = append(w.Devices, simverbs.Device{Name: fmt.Sprint("sim", host*cables+i), Node: node,
				GIDs: []string{fmt.Sprintf("10.9.%d.%d/24", i+1, host+1)}, Speed: 100_000})
		}
	}
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestFusedDevices makes one device of two through every table that can, on
// both sides or on one, and moves data through it.
func TestFusedDevices(t *testing.T) {
	for version := host.SinceVDevices; version <= newest; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			t.Parallel()
			w := newFusedWorld(t, version, 2)
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
			must(t, a.n.Finalize(), "finalize") // and NCCL loads the library again, which never went away
			a.load(version)
			must(t, a.n.Init(), "init")
			if n, err := a.n.Devices(); err != nil || n != 2 {
				t.Errorf("%d devices after a further load, %v", n, err)
			}
			if d, err := a.fuse(0, 1); err != nil || d != 2 {
				t.Errorf("device %d, %v", d, err)
			}
		})
	}
}

// TestMostFusedDevices fuses as many devices as a release's table has places for,
// moves data over all of them, and is refused one more, with the number.
func TestMostFusedDevices(t *testing.T) {
	for version := host.SinceVDevices; version <= newest; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			asked := bare(t, "asked")
			asked.load(version)
			most := asked.n.Devs
			w := newFusedWorld(t, version, most+1)
			a, b := w.start("left", version), w.start("right", version)
			var members []int
			for i := range most {
				members = append(members, i)
			}
			for _, p := range []*peer{a, b} {
				mark := marked(p)
				if d, err := p.fuse(append(slices.Clone(members), most)...); host.Code(err) != host.InvalidUsage ||
					!strings.Contains(strings.Join(said(p, mark), "\n"), fmt.Sprintf("%d devices in one, this release's table takes at most %d", most+1, most)) {
					t.Errorf("device %d of %d others: %v, %q", d, most+1, err, said(p, mark))
				}
				d, err := p.fuse(members...)
				must(t, err, "makeVDevice")
				x, err := p.n.Props(d)
				must(t, err, "getProperties")
				if x.Speed != 100_000*most || x.NVDevs != int64(most) || len(x.VDevs) != most || x.VDevs[most-1] != int64(most-1) {
					t.Errorf("%+v", x)
				}
			}
			mark, before := marked(a), w.count(a)
			c := join(a, b, 16<<20)
			for _, size := range []int64{8, 4 << 20} {
				c.move(traffic{size: size, count: 10, window: 4})
			}
			settle(t, fmt.Sprintf("a lane over each of %d members", most), func() (string, bool) {
				o := w.count(a)
				return fmt.Sprintf("%d queue pairs, before %d", o.QPs, before.QPs), o.QPs-before.QPs >= most
			})
			c.move(traffic{size: 4 << 20, count: 10, window: 4})
			if byRDMA(a, mark) != 1 {
				t.Errorf("%q", said(a, mark))
			}
		})
	}
}
