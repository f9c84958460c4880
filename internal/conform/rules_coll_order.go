package conform

import (
	"fmt"

	"weft/internal/host"
)

// started starts tasks of one rank until each is under way.
func (e *Env) started(tasks ...*task) {
	for _, t := range tasks {
		e.until(0, t.what()+" to be taken", func() bool {
			ok := t.start()
			e.must(t.err, t.what())
			return ok
		})
	}
}

// byRank are the tasks of reductions, each rank's in their order.
func byRank(g *world, all []*reduction) (tasks []*task) {
	for i := range g.ranks {
		for _, r := range all {
			tasks = append(tasks, r.tasks[i])
		}
	}
	return tasks
}

var collOrderRules = []*Rule{
	{ID: "coll.wait", Says: "a collective is started at once, whatever other ranks do, and is done on no rank before all have started it",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			for _, count := range []int64{1, 100_000} {
				r := g.reduction(g.values(host.Float32, host.Sum), count, false)
				first := r.tasks[0]
				e.started(first)
				for range 20 {
					if first.test() {
						e.failf("rank 0's all-reduce of %d elements is done before rank 1 has started it", count)
					}
					e.must(first.err, "test")
				}
				settle()
				if first.test() {
					e.failf("rank 0's all-reduce of %d elements is done before rank 1 has started it", count)
				}
				e.finish(r.tasks...)
				r.right()
			}
		}},
	{ID: "coll.many", Says: "several collectives are under way at once on a comm, of any sizes, types and operations, and all are right",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(3)
			var all []*reduction
			for i, count := range []int64{1, 100_000, 3, 5000, 1, 70_000, 64, 1} {
				all = append(all, g.reduction(g.values([]host.DataType{host.Float32, host.Int8}[i%2], host.RedOp(i%4)), count, false))
			}
			tasks := byRank(g, all)
			e.started(tasks...)
			e.finish(tasks...)
			for _, r := range all {
				r.right()
			}
		}},
	{ID: "coll.pressure", Says: "a comm has at least 8 collectives under way; beyond its limit there is no request and no error, the call is made again, and none is lost",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			const n = 80
			var all []*reduction
			for i := range n {
				all = append(all, g.reduction(g.values(host.Float32, host.Sum), int64(1+i*13), false))
			}
			taken := 0
			for taken < n && all[taken].tasks[0].start() {
				taken++
			}
			if taken < n {
				e.must(all[taken].tasks[0].err, fmt.Sprintf("iallreduce number %d with none tested", taken+1))
			}
			if taken < 8 {
				e.failf("only %d are under way at once", taken)
			}
			e.finish(byRank(g, all)...)
			for _, r := range all {
				r.right()
			}
		}},
	{ID: "coll.order", Care: true, Says: "collectives of a comm are done in the order in which they were started: when one is, so are all before it",
		Basis: basisWeft, Check: func(e *Env) {
			g := e.world(2)
			var all []*reduction
			for _, count := range []int64{200_000, 1, 3000, 1} {
				all = append(all, g.reduction(g.values(host.Float32, host.Sum), count, false))
			}
			e.started(byRank(g, all)...)
			last := all[len(all)-1]
			e.until(0, "the last of four collectives", func() bool {
				for _, t := range last.tasks {
					if !t.done {
						t.test()
						e.must(t.err, "test")
					}
				}
				return last.tasks[0].done && last.tasks[1].done
			})
			for i, r := range all[:len(all)-1] {
				for _, t := range r.tasks {
					if !t.test() {
						e.failf("number %d of 4 is not done on rank %d, and the last is (%v)", i+1, t.m.rank, t.err)
					}
				}
				r.right()
			}
		}},
	{ID: "coll.flush", Says: "iflush of a result in host memory succeeds (flush in v3), and a request that it gives is done",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			r := g.reduction(g.values(host.Float32, host.Sum), 1000, false)
			e.finish(r.tasks...)
			for i, m := range g.ranks {
				rep, err := m.call("iflush", host.Args{"comm", m.comm, "data", r.out[i].addr, "size", r.out[i].size, "mh", r.tasks[i].mr("rmh")})
				e.must(err, "iflush")
				if t := (&task{m: m, slot: "iflush", req: rep.Ptr("req")}); t.req != 0 {
					e.finish(t)
				}
			}
			r.right()
		}},
}
