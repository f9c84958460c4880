package conform

import (
	"weft/internal/host"
)

// reducible are the types and operations that the plugin says it reduces.
func (m *member) reducible() (list []host.Values) {
	for t := range host.DataTypes {
		for op := range host.RedOps {
			yes, err := m.coll.ReduceSupport(host.DataType(t), host.RedOp(op))
			m.e.must(err, "reduceSupport")
			if yes {
				list = append(list, host.Values{Type: host.DataType(t), Op: host.RedOp(op)})
			}
		}
	}
	return list
}

var collReduceRules = []*Rule{
	{ID: "coll.support", Says: "what reduceSupport says yes to is reduced right: integers and extremes exactly, floats within what the roundings of their type come to",
		Basis: basisHeader, Check: func(e *Env) {
			g := e.world(3)
			list := g.ranks[0].reducible()
			if len(list) == 0 {
				e.failf("reduceSupport says no to every type and operation")
			}
			for _, v := range list {
				g.reduce(v.Type, v.Op, 501, false)
			}
		}},
	{ID: "coll.support.same", Says: "reduceSupport says the same on all ranks",
		Basis: basisLoader, Check: func(e *Env) {
			a, b := e.member(0).reducible(), e.member(1).reducible()
			if len(a) != len(b) {
				e.failf("%d types and operations on one rank, %d on another", len(a), len(b))
			}
			for i := range a {
				if a[i] != b[i] {
					e.failf("one rank reduces %v by %v, another %v by %v", a[i].Type, a[i].Op, b[i].Type, b[i].Op)
				}
			}
		}},
	{ID: "coll.support.no", Says: "reduceSupport says no to what no table can tell it: operations that users make, types that there are not",
		Basis: basisHeader, Check: func(e *Env) {
			m := e.member(0)
			for _, c := range [][2]int{{7, 5}, {7, 1000}, {12, 0}, {100, 0}} {
				yes, err := m.coll.ReduceSupport(host.DataType(c[0]), host.RedOp(c[1]))
				e.alive(err, "reduceSupport")
				if yes && err == nil {
					e.failf("type %d by operation %d: supported", c[0], c[1])
				}
			}
		}},
	{ID: "coll.same", Says: "the result of an all-reduce is the same on all ranks, bit by bit, and so is that of the same values again",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(3)
			for _, v := range g.ranks[0].reducible() {
				v = g.values(v.Type, v.Op)
				one, again := g.reduction(v, 3001, false), g.reduction(v, 3001, false)
				e.finish(one.tasks...)
				e.finish(again.tasks...)
				one.same()
				a, b := one.read(0), again.read(0)
				if at := differ(a, b); at >= 0 {
					e.failf("%v of %v: the second result differs at byte %d", v.Op, v.Type, at)
				}
			}
		}},
	{ID: "coll.sizes", Says: "all-reduces of every size are right, and touch nothing beside their buffers",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			for _, count := range []int64{1, 2, 3, 7, 63, 65, 1000, 4097, 70_001, 1<<20 + 3} {
				g.reduce(host.Float32, host.Sum, count, false)
			}
		}},
	{ID: "coll.inplace", Says: "an all-reduce may have its input and its result in the same place",
		Basis: basisDoc, Check: func(e *Env) {
			g := e.world(3)
			for _, count := range []int64{1, 1001, 300_000} {
				g.reduce(host.Float32, host.Sum, count, true)
			}
		}},
	{ID: "coll.zero", Says: "an all-reduce of no elements is one like others: it is started, it is done, and those behind it are right",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			g.reduce(host.Float32, host.Sum, 0, false)
			none, some := g.reduction(g.values(host.Float32, host.Sum), 0, false), g.reduction(g.values(host.Float32, host.Sum), 100, false)
			e.finish(append(none.tasks, some.tasks...)...)
			some.right()
		}},
	{ID: "coll.mr", Says: "memory is registered and deregistered again and again, parts of it too, and a NULL handle deregistered is no error",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			for range 3 {
				r := g.reduction(g.values(host.Float32, host.Sum), 1000, false)
				e.finish(r.tasks...)
				r.right()
				for i, m := range g.ranks {
					for _, key := range []string{"smh", "rmh"} {
						e.must(m.coll.DeregMr(m.comm, r.tasks[i].mr(key)), "deregMr")
					}
					e.must(m.coll.DeregMr(m.comm, 0), "deregMr of NULL")
				}
			}
		}},
	{ID: "coll.unregistered", Care: true, Says: "a collective from or to memory that is not registered is refused, and the comm goes on",
		Basis: basisWeft, Check: func(e *Env) {
			g := e.world(2)
			m := g.ranks[0]
			in, out := m.buf(4096), m.buf(4096)
			smh, rmh := m.mr(in.cut(1000)), m.mr(out)
			for _, c := range []struct {
				what     string
				smh, rmh host.Ptr
			}{{"no handle of the input", 0, rmh}, {"no handle of the result", smh, 0}, {"an input beyond its registration", smh, rmh}} {
				m.refused("iallreduce", host.Args{"comm", m.comm, "send", in.addr, "recv", out.addr, "smh", c.smh, "rmh", c.rmh, "count", 4096, "type", int(host.Int8)}, c.what)
			}
			g.reduce(host.Float32, host.Sum, 100, false)
		}},
	{ID: "coll.wrong", Care: true, Says: "a count that cannot be, and types and operations that reduceSupport says no to, are refused, and the comm goes on",
		Basis: basisWeft, Check: func(e *Env) {
			g := e.world(2)
			m := g.ranks[0]
			b := m.buf(4096)
			mh := m.mr(b)
			for _, c := range []struct {
				what     string
				count    int64
				typ, ops int
			}{{"a negative or endless count", -1, 7, 0}, {"type 12", 4, 12, 0}, {"operation 1000", 4, 7, 1000}} {
				m.refused("iallreduce", host.Args{"comm", m.comm, "send", b.addr, "recv", b.addr, "smh", mh, "rmh", mh, "count", c.count, "type", c.typ, "op", c.ops}, c.what)
			}
			g.reduce(host.Float32, host.Sum, 100, false)
		}},
}

// mr is a handle among a task's arguments.
func (t *task) mr(key string) host.Ptr {
	for i := 0; i < len(t.args); i += 2 {
		if t.args[i] == key {
			return t.args[i+1].(host.Ptr)
		}
	}
	return 0
}
