package conform

import (
	"fmt"

	"weft/internal/host"
)

// fails goes on until the rank has an error: of test, or of a further collective where there is nothing to test.
func (t *task) fails(why string) {
	t.m.e.until(0, fmt.Sprintf("an error on rank %d %s", t.m.rank, why), func() bool {
		if t.req == 0 {
			t.start()
		} else if t.test() {
			t.m.e.failf("an all-reduce is done on rank %d %s", t.m.rank, why)
		}
		return t.err != nil
	})
}

var collFailRules = []*Rule{
	{ID: "coll.dead", Says: "when a rank dies, collectives under way end in an error on every other rank, from test: none is done, none waits for ever",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(3)
			g.reduce(host.Float32, host.Sum, 100, false)
			r := g.reduction(g.values(host.Float32, host.Sum), 90_000, false)
			e.started(r.tasks[0], r.tasks[1])
			g.ranks[2].h.Kill()
			for _, t := range r.tasks[:2] {
				t.fails("after rank 2's death")
				if c := host.Code(t.err); !legal(e.version, c) {
					e.failf("rank %d's test after rank 2's death: %v", t.m.rank, c)
				}
			}
			for _, m := range g.ranks[:2] {
				e.must(m.coll.CloseColl(m.comm), "closeColl after rank 2's death")
			}
		}},
	{ID: "coll.close.inflight", Says: "closeColl with collectives under way returns, and nothing is written afterwards",
		Basis: basisProxy, Check: func(e *Env) {
			g := e.world(2)
			g.reduce(host.Float32, host.Sum, 100, false)
			r := g.reduction(g.values(host.Float32, host.Sum), 300_000, false)
			e.started(r.tasks[0])
			r.tasks[0].test()
			e.must(g.ranks[0].coll.CloseColl(g.ranks[0].comm), "closeColl with an all-reduce under way")
			r.out[0].fillByte(0x5c)
			r.tasks[1].fails("after rank 0 has closed its comm")
			settle()
			r.out[0].untouched(0x5c, "the result's memory after closeColl")
			e.must(g.ranks[1].coll.CloseColl(g.ranks[1].comm), "closeColl after rank 0's")
		}},
	{ID: "coll.close.done", Says: "a rank may close its comm as soon as its own collectives are done: the others' end well",
		Basis: basisProxy, Check: func(e *Env) {
			for _, leaver := range []int{0, 1} {
				g := e.world(2)
				r := g.reduction(g.values(host.Float32, host.Sum), 500_000, false)
				e.started(r.tasks...)
				e.until(0, r.tasks[leaver].what(), func() bool {
					ok := r.tasks[leaver].test()
					e.must(r.tasks[leaver].err, r.tasks[leaver].what())
					return ok
				})
				e.must(g.ranks[leaver].coll.CloseColl(g.ranks[leaver].comm), "closeColl")
				e.finish(r.tasks[1-leaver])
				r.right()
			}
		}},
	{ID: "coll.close.null", Care: true, Says: "closeColl and closeListen of NULL succeed, as those of net do",
		Basis: basisNets, Check: func(e *Env) {
			m := e.member(0)
			e.must(m.coll.CloseColl(0), "closeColl of NULL")
			e.must(m.coll.CloseListen(0), "closeListen of NULL")
		}},
}
