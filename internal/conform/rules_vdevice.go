package conform

import (
	"slices"

	"weft/internal/host"
)

// fuse makes one device of two, of the only one where there are no two.
func (p *proc) fuse() (dev int, members []int) {
	e := p.e
	if !p.net.Slots["makeVDevice"] {
		e.skipf(noVDevice)
	}
	members = []int{0, 1}[:min(p.ndev, 2)]
	dev, err := p.net.MakeVDevice(members)
	if host.Code(err) == host.InvalidUsage && p.ndev > 1 { // of different kinds, or forbidden
		e.skipf("devices 0 and 1 cannot be one: %v", err)
	}
	e.must(err, "makeVDevice")
	if n, err := p.net.Devices(); err == nil && p.net.Version == 9 && len(members) > 1 && n == p.ndev+len(members) { // its hosts look at the count alone
		e.skipf("devices 0 and 1 cannot be one: each is made anew")
	}
	return dev, members
}

var vdeviceRules = []*Rule{
	{ID: "vdevice.made", From: 9, Says: "makeVDevice returns the number behind all devices; devices counts it, and getProperties tells its members, no less than the speed of each and, where they are several, a name of its own",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			dev, members := p.fuse()
			if dev != p.ndev {
				e.failf("makeVDevice returned device %d where there are %d", dev, p.ndev)
			}
			if n, err := p.net.Devices(); err != nil || n != p.ndev+1 {
				e.failf("%d devices afterwards (%v), %d before", n, err, p.ndev)
			}
			x, err := p.net.Props(dev, "fill", 0)
			e.must(err, "getProperties")
			for i, m := range members {
				one, err := p.net.Props(m, "fill", 0)
				e.must(err, "getProperties")
				if x.NVDevs != int64(len(members)) || i >= len(x.VDevs) || x.VDevs[i] != int64(m) || x.Speed < one.Speed || x.Name == one.Name && len(members) > 1 {
					e.failf("%q of device %d: vProps %d:%v, %d Mb/s; made of %v, of which %q has %d Mb/s", x.Name, dev, x.NVDevs, x.VDevs, x.Speed, members, one.Name, one.Speed)
				}
			}
		}},
	{ID: "vdevice.data", From: 9, Says: "connections of a device made of several carry data of every size, both ways, in groups too, also after one that was never used",
		Basis: basisLoader, Check: func(e *Env) {
			tx, rx := e.two()
			dev, _ := tx.fuse()
			if other, _ := rx.fuse(); other != dev {
				e.failf("makeVDevice returned device %d in one process and %d in another", dev, other)
			}
			unused := e.join(tx, rx, dev)
			for _, c := range closes {
				e.must(unused.closing(c), c+" of a connection that was never used")
			}
			l, back := e.join(tx, rx, dev), e.join(rx, tx, dev)
			for i, size := range []int64{0, 1, 127, 129, 257, 513, 1000, 70_001, 1 << 20, 3<<20 + 5} {
				l.move(size, uint64(i))
				back.move(size, uint64(100+i))
			}
			n, bufs := e.group(l, 70_000)
			ops := []*op{l.recvOp(1, bufs...)}
			for i := range n {
				ops = append(ops, l.pattern(70_000, uint64(i), 1+i))
			}
			e.run(ops...)
			for i, b := range bufs {
				b.holds(70_000, uint64(i), "message of a group")
			}
		}},
	{ID: "vdevice.refused", From: 9, Care: true, Says: "makeVDevice of nothing, of a negative number, of too many, of one device twice or of one that is not there is an error and makes nothing",
		Basis: basisWeft, Check: func(e *Env) {
			p := e.proc("process")
			if !p.net.Slots["makeVDevice"] {
				e.skipf(noVDevice)
			}
			for _, members := range [][]int{{}, {0, 0}, {p.ndev}, {-1}, {0, p.ndev + 1000}, slices.Repeat([]int{0}, p.net.Devs+1)} {
				d, err := p.net.MakeVDevice(members)
				e.alive(err, "makeVDevice")
				if err == nil {
					e.failf("makeVDevice of %v returned device %d", members, d)
				}
			}
			for _, n := range []int{-1, -1 << 31} {
				r, err := p.call("main", "makeVDevice", host.Args{"devs", []int{0}, "n", n, "d", -1})
				if err == nil {
					e.failf("makeVDevice of %d devices returned device %d", n, r.Int("d"))
				}
			}
			if n, err := p.net.Devices(); err != nil || n != p.ndev {
				e.failf("%d devices afterwards (%v), %d before", n, err, p.ndev)
			}
		}},
}
