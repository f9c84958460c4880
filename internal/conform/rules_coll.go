package conform

import (
	"fmt"
	"strings"

	"weft/internal/host"
)

var (
	collSlots = "init devices getProperties listen connect reduceSupport regMr deregMr iallreduce test closeColl closeListen"
	profSlots = "init startEvent stopEvent recordEventState finalize"
)

func (e *Env) table(f host.Family) (*proc, *host.Table) {
	p := e.start("process")
	var err error
	p.lib, err = p.h.Load(e.o.Lib)
	e.must(err, "dlopen")
	t, err := p.lib.Bind(f, e.version, "")
	e.must(err, "look up of the table")
	return p, t
}

func (e *Env) slots(t *host.Table, names string) {
	if t.Name == "" || t.Name == "(null)" {
		e.failf("name is %q", t.Name)
	}
	for _, n := range strings.Fields(names) {
		if !t.Slots[n] {
			e.failf("%s is NULL", n)
		}
	}
}

// cleanInit calls init, which succeeds or fails with a code that NCCL knows.
func (e *Env) cleanInit(t *host.Table) bool {
	_, err := t.Call("main", "init", nil)
	e.alive(err, "init")
	c := host.Code(err)
	if !legal(host.FamilyNet.Newest(), c) {
		e.failf("init: %v", c)
	}
	return c == host.Success
}

var collTableRules = []*Rule{
	{ID: "coll.slots", Says: "the collNet table has a name and all slots that NCCL calls unchecked",
		Basis: basisHeader, Check: func(e *Env) { _, t := e.table(host.FamilyColl); e.slots(t, collSlots) }},
	{ID: "coll.init", Says: "collNet's init succeeds, or fails with an error that NCCL knows; devices then tells how many there are (0: no collNet)",
		Basis: basisLoader, Check: func(e *Env) {
			_, t := e.table(host.FamilyColl)
			if !e.cleanInit(t) {
				return
			}
			r, err := t.Call("main", "devices", nil)
			e.must(err, "devices")
			if n := r.Int("n"); n < 0 {
				e.failf("init succeeded but devices says %d", n)
			}
		}},
	{ID: "coll.context", Says: "a collNet without devices gives no context: NCCL 2.28.3 calls finalize with it through a pointer that is NULL then",
		Basis: basisLoader, From: 11, Check: func(e *Env) {
			_, t := e.table(host.FamilyColl)
			r, err := t.Call("main", "init", nil)
			e.alive(err, "init")
			context := r.Ptr("ctx")
			if err != nil || context == 0 {
				return
			}
			r, err = t.Call("main", "devices", nil)
			e.must(err, "devices")
			if n := r.Int("n"); n == 0 {
				e.failf("init gives context %#x, but devices says 0", uint64(context))
			}
		}},
}

var profRules = []*Rule{
	{ID: "profiler.slots", Says: "the profiler's table has a name and all five functions",
		Basis: basisHeader, Check: func(e *Env) { _, t := e.table(host.FamilyProf); e.slots(t, profSlots) }},
	{ID: "profiler.threads", Says: "the profiler's init comes from many communicators' threads at once, outside any lock, and its finalize too",
		Basis: basisLoader, Check: func(e *Env) {
			p, t := e.table(host.FamilyProf)
			var waits []*host.Pending
			for i := range 8 {
				waits = append(waits, p.h.Go(fmt.Sprintf("comm%d", i), "prof.init", host.Args{"on", t.As, "name", "world", "commId", i, "nranks", 8, "rank", i, "nnodes", 2}))
			}
			var contexts []host.Ptr
			for i, w := range waits {
				r, err := w.Wait()
				e.alive(err, fmt.Sprintf("init %d of 8 at once", i))
				if err == nil {
					contexts = append(contexts, r.Ptr("ctx"))
				}
			}
			if n := len(contexts); n != 0 && n != len(waits) {
				e.failf("%d of %d inits at once succeed", n, len(waits))
			}
			waits = nil
			for i, c := range contexts {
				waits = append(waits, p.h.Go(fmt.Sprintf("comm%d", i), "prof.finalize", host.Args{"on", t.As, "ctx", c}))
			}
			for _, w := range waits {
				_, err := w.Wait()
				e.must(err, "finalize of 8 at once")
			}
		}},
	{ID: "profiler.init", Says: "the profiler's init succeeds or fails with an error that NCCL knows",
		Basis: basisLoader, Check: func(e *Env) { _, t := e.table(host.FamilyProf); e.cleanInit(t) }},
}
