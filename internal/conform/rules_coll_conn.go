package conform

import (
	"fmt"
	"slices"
	"time"

	"weft/internal/host"
)

// fused makes one device of two, of the only one where there are no two.
func (m *member) fused() int {
	e := m.e
	if !m.coll.Slots["makeVDevice"] {
		e.skipf(noVDevice)
	}
	members := []int{0, 1}[:min(m.ndev, 2)]
	dev, err := m.coll.MakeVDevice(members)
	if host.Code(err) == host.InvalidUsage && m.ndev > 1 { // of different kinds, or forbidden
		e.skipf("devices 0 and 1 cannot be one: %v", err)
	}
	e.must(err, "makeVDevice")
	n, err := m.coll.Devices()
	e.must(err, "devices")
	if m.coll.Version == 9 && len(members) > 1 && n == m.ndev+len(members) { // its hosts look at the count alone
		e.skipf("devices 0 and 1 cannot be one: each is made anew")
	}
	if dev != m.ndev || n != m.ndev+1 {
		e.failf("makeVDevice returned device %d, and there are %d now; there were %d", dev, n, m.ndev)
	}
	x, err := m.coll.Props(dev)
	e.must(err, "getProperties")
	if x.NVDevs != int64(len(members)) {
		e.failf("device %d, made of %v, has vProps %d:%v", dev, members, x.NVDevs, x.VDevs)
	}
	return dev
}

const noVDevice = "makeVDevice is NULL"

var collConnRules = []*Rule{
	{ID: "coll.connect", Gate: true, Says: "when all ranks call connect with all handles, each gets its collComm; for every number of ranks, and again in the same processes",
		Basis: basisProxy, Check: func(e *Env) {
			for _, n := range []int{2, 3} {
				g := e.world(n)
				g.leave()
				g.join(g.listen())
				g.leave()
			}
		}},
	{ID: "coll.props", Says: "a device of collNet is the net device of the same name: path, guid, speed and port are the same, and host memory is taken",
		Basis: basisLoader, Check: func(e *Env) {
			m := e.member(0)
			if m.net == nil {
				e.skipf("there is no net table of this version")
			}
			nets := map[string]*host.Props{}
			count, err := m.net.Devices()
			e.must(err, "devices of net")
			for dev := range count {
				x, err := m.net.Props(dev)
				e.must(err, "getProperties of net")
				nets[x.Name] = x
			}
			for dev := range m.ndev {
				x, err := m.coll.Props(dev)
				e.must(err, "getProperties")
				n := nets[x.Name]
				if n == nil {
					e.failf("device %d is %q, which no net device is", dev, x.Name)
				}
				if x.PCIPath != n.PCIPath || x.GUID != n.GUID || x.Speed != n.Speed || x.Port != n.Port || x.PtrSupport&1 == 0 {
					e.failf("device %d, %q: %s guid %#x speed %d port %d, memory %#x; net's: %s guid %#x speed %d port %d", dev, x.Name, x.PCIPath, x.GUID, x.Speed, x.Port, x.PtrSupport, n.PCIPath, n.GUID, n.Speed, n.Port)
				}
			}
		}},
	{ID: "coll.limit", From: 9, Says: "maxCollBytes is in 1 to 1 TiB: NCCL gives up collNet with any other",
		Basis: basisLoader, Check: func(e *Env) {
			m := e.member(0)
			for dev := range m.ndev {
				x, err := m.coll.Props(dev)
				e.must(err, "getProperties")
				if x.MaxCollBytes-1 >= 1<<40 {
					e.failf("device %d: maxCollBytes %d", dev, x.MaxCollBytes)
				}
			}
		}},
	{ID: "coll.room", Says: "listen writes no more than the handle has: 128 bytes, 64 before v5",
		Basis: basisHeader, Check: func(e *Env) {
			m := e.member(0)
			handle := m.buf(256)
			handle.fillByte(0x5c)
			r, err := m.call("listen", host.Args{"ctx", m.coll.Ctx, "dev", 0, "handle", handle.addr})
			e.must(err, "listen")
			handle.at(int64(m.coll.HandleSize())).untouched(0x5c, "memory behind the handle")
			e.must(m.coll.CloseListen(r.Ptr("comm")), "closeListen")
		}},
	{ID: "coll.connect.dead", Says: "when a rank is dead, connect fails on every other: none has a comm, and none waits for ever",
		Basis: basisProxy, Check: func(e *Env) {
			g, handles := e.listening(3)
			g.ranks[2].h.Kill()
			for i, err := range g.connect(handles, g.ranks[:2]...) {
				if err == nil {
					e.failf("connect of rank %d succeeds without rank 2", i)
				}
			}
		}},
	{ID: "coll.two", Says: "a process has several comms at once, and what one does is not the others' affair",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			other := &world{e: e}
			for _, m := range g.ranks {
				copied := *m
				other.ranks = append(other.ranks, &copied)
			}
			other.join(other.listen())
			a, b := g.reduction(g.values(host.Float32, host.Sum), 1000, false), other.reduction(other.values(host.Int8, host.Max), 3000, false)
			e.started(a.tasks[0], b.tasks[1]) // each rank begins with another comm
			e.finish(b.tasks...)
			e.finish(a.tasks...)
			a.right()
			b.right()
			g.leave()
			other.reduce(host.Float32, host.Sum, 100, false)
			other.leave()
		}},
	{ID: "coll.vdevice", From: 9, Says: "makeVDevice of collNet makes a device as net's does: its number is behind all devices, devices counts it, getProperties tells its members, and collectives go over it",
		Basis: basisLoader, Check: func(e *Env) {
			g := &world{e: e, ranks: []*member{e.member(0), e.member(1)}}
			for _, m := range g.ranks {
				m.dev = m.fused()
			}
			g.join(g.listen())
			g.reduce(host.Float32, host.Sum, 10_000, false)
			g.leave()
		}},
	{ID: "coll.leave", Says: "what connect and collectives took is given back at their close: many groups one after the other leave no descriptor and no thread",
		Basis: basisProxy, Check: func(e *Env) {
			g, handles := e.listening(2)
			type kept struct{ descriptors, threads int }
			held := func() (all []kept) {
				for _, m := range g.ranks {
					st, err := m.h.Stat()
					e.must(err, "stat")
					all = append(all, kept{st.FDs, st.Threads})
				}
				return all
			}
			cycle := func() {
				g.join(handles)
				g.reduce(host.Int8, host.Sum, 100_000, false)
				g.leave()
				handles = g.listen()
			}
			cycle() // what is kept for the next
			cycle()
			// A runtime in the process may begin a thread meanwhile, but not time and again.
			for tries := 1; ; tries++ {
				before := held()
				for range 5 {
					cycle()
				}
				same := func() bool { return slices.Equal(held(), before) }
				if tries < 5 {
					if e.within(time.Second, same) {
						return
					}
					continue
				}
				e.until(0, fmt.Sprintf("descriptors and threads of each rank: %v, after 5 more groups %v: as few as before", before, held()), same)
				return
			}
		}},
	{ID: "coll.foreign", Care: true, Says: "calls on a comm that was never opened, or is of another kind, are errors that NCCL knows, not crashes",
		Basis: basisWeft, Check: func(e *Env) {
			g := e.world(2)
			m := g.ranks[0]
			b := m.buf(64)
			mh := m.mr(b)
			reduce := func(comm host.Ptr) host.Args {
				return host.Args{"comm", comm, "send", b.addr, "recv", b.addr, "smh", mh, "rmh", mh, "count", 8, "type", int(host.Int8)}
			}
			for _, c := range []struct {
				slot string
				args host.Args
				what string
			}{
				{"iallreduce", reduce(m.listen), "iallreduce on a listenComm"},
				{"iallreduce", reduce(0xdead0), "iallreduce on no comm"},
				{"regMr", host.Args{"comm", m.listen, "data", b.addr, "size", b.size}, "regMr on a listenComm"},
				{"test", host.Args{"req", m.comm}, "test of a collComm"},
				{"test", host.Args{"req", host.Ptr(0xdead0)}, "test of no request"},
				{"closeColl", host.Args{"comm", m.listen}, "closeColl of a listenComm"},
				{"closeListen", host.Args{"comm", m.comm}, "closeListen of a collComm"},
				{"closeColl", host.Args{"comm", host.Ptr(0xdead0)}, "closeColl of no comm"},
				{"deregMr", host.Args{"comm", m.comm, "mh", host.Ptr(0xdead0)}, "deregMr of no registration"},
			} {
				m.refused(c.slot, c.args, c.what)
			}
			g.reduce(host.Int8, host.Sum, 100, false)
		}},
}
