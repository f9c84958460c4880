package conform

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/abi"
	"weft/internal/host"
)

// Of the tuner's tables.
const (
	tunerCosts  = 3 // the first that changes costs; before, an algorithm is chosen
	tunerChunks = 6 // the first with getChunkSize
	tunerIgnore = -1
	tunerProtos = 3
	tunerGrain  = 512 // NCCL 2.30.7, ncclProtoGrainSize of Simple
)

var tunerSlots = []struct {
	from, to int
	name     string
}{{2, 0, "init"}, {2, 0, "getCollInfo"}, {2, 4, "destroy"}, {5, 0, "finalize"}}

// question is a collective that a tuner is asked about.
type question struct {
	function int   // ncclFunc_t
	bytes    int64 // of the collective
	costs    []int // by algorithm and protocol
}

// tunerQuestions are all collectives, at sizes from one byte up; what NCCL
// cannot do is ignored already, as NVLS is here.
func tunerQuestions() (all []question) {
	costs := make([]int, 7*tunerProtos)
	for i := range costs {
		if costs[i] = 100 + 7*i; i/tunerProtos == 4 || i%2 == 0 && i > 12 {
			costs[i] = tunerIgnore
		}
	}
	large := slices.Clone(costs)
	large[abi.NCCL_ALGO_RING*tunerProtos+abi.NCCL_PROTO_SIMPLE] = 50 // the cheapest
	for function := range 5 {
		for shift := 0; shift <= 40; shift += 4 {
			q := question{function, 1<<shift + 3, costs}
			if shift > 20 {
				q.costs = large
			}
			all = append(all, q)
		}
	}
	return all
}

// reply is what a tuner says to it.
type reply struct {
	costs           []float64
	algo, proto, ch int64
}

// communicator begins one with that tuner.
func (e *Env) communicator(t *host.Table, thread string, ranks, nodes int) (host.Ptr, error) {
	r, err := t.Call(thread, "init", host.Args{"nranks", ranks, "nnodes", nodes, "commId", 7})
	return r.Ptr("ctx"), err
}

func (e *Env) ask(t *host.Table, ctx host.Ptr, q question) reply {
	what := fmt.Sprintf("getCollInfo of function %d with %d bytes", q.function, q.bytes)
	r, err := t.Call("main", "getCollInfo", host.Args{"ctx", ctx, "func", q.function, "bytes", q.bytes, "protos", tunerProtos, "cost", q.costs})
	e.must(err, what)
	a := reply{algo: r.Int("algo"), proto: r.Int("proto"), ch: r.Int("channels")}
	if e.version >= tunerCosts {
		for _, s := range strings.Split(r.Str("cost"), ",") {
			cost, err := strconv.ParseFloat(s, 64)
			e.must(err, what+": costs")
			a.costs = append(a.costs, cost)
		}
	}
	return a
}

// sound looks at what NCCL would make of it.
func (e *Env) sound(q question, a reply) {
	where := fmt.Sprintf("function %d with %d bytes", q.function, q.bytes)
	if a.ch < 0 {
		e.failf("%s: %d channels", where, a.ch)
	}
	if e.version < tunerCosts {
		if (a.algo < 0) != (a.proto < 0) {
			e.failf("%s: algorithm %d and protocol %d; NCCL takes both or neither", where, a.algo, a.proto)
		}
		return
	}
	left := false
	for i, cost := range a.costs {
		algo, proto := i/tunerProtos, i%tunerProtos
		switch {
		case q.costs[i] == tunerIgnore && cost != tunerIgnore:
			e.failf("%s: algorithm %d, protocol %d cannot be used, and its cost became %g", where, algo, proto, cost)
		case cost != cost || cost < 0 && cost != tunerIgnore:
			e.failf("%s: the cost of algorithm %d, protocol %d became %g", where, algo, proto, cost)
		}
		left = left || cost >= 0
	}
	if !left {
		e.failf("%s: nothing is left that NCCL could use", where)
	}
}

var tuneRules = []*Rule{
	{ID: "tuner.slots", Gate: true, Says: "the tuner's table has a name and all functions but getChunkSize, which may be NULL",
		Basis: basisHeader, Check: func(e *Env) {
			_, t := e.table(host.FamilyTune)
			for _, s := range tunerSlots {
				if e.version >= s.from && (s.to == 0 || e.version <= s.to) {
					e.slots(t, s.name)
				}
			}
		}},
	{ID: "tuner.init", Says: "the tuner's init succeeds, on the threads of many communicators at once: what fails there fails the communicator",
		Basis: basisLoader, Check: func(e *Env) {
			p, t := e.table(host.FamilyTune)
			var waits []*host.Pending
			for i := range 8 {
				waits = append(waits, p.h.Go(fmt.Sprintf("comm%d", i), "tune.init", host.Args{"on", t.As, "nranks", 8 + i%3, "nnodes", 4}))
			}
			for i, w := range waits {
				r, err := w.Wait()
				e.must(err, fmt.Sprintf("init %d of 8 at once", i))
				_, err = t.Call("main", "finalize", host.Args{"ctx", r.Ptr("ctx")})
				e.must(err, "finalize")
			}
		}},
	{ID: "tuner.costs", Says: "getCollInfo succeeds, or it fails the collective; it leaves something to choose, and nothing that NCCL cannot do",
		Basis: basisLoader, Check: func(e *Env) {
			_, t := e.table(host.FamilyTune)
			ctx, err := e.communicator(t, "main", 8, 4)
			e.must(err, "init")
			for _, q := range tunerQuestions() {
				e.sound(q, e.ask(t, ctx, q))
			}
		}},
	{ID: "tuner.agrees", Says: "processes of one communicator are told the same: ranks that choose differently wait for each other for ever",
		Basis: basisLoader, Check: func(e *Env) {
			_, one := e.table(host.FamilyTune)
			_, other := e.table(host.FamilyTune)
			_, err := e.communicator(other, "main", 2, 2) // this process has been in another communicator before
			e.must(err, "init")
			first, err := e.communicator(one, "main", 8, 4)
			e.must(err, "init")
			second, err := e.communicator(other, "main", 8, 4)
			e.must(err, "init")
			for _, q := range tunerQuestions() {
				a, b := e.ask(one, first, q), e.ask(other, second, q)
				if a.algo != b.algo || a.proto != b.proto || a.ch != b.ch || !slices.Equal(a.costs, b.costs) {
					e.failf("function %d with %d bytes: one process is told %+v, another %+v", q.function, q.bytes, a, b)
				}
			}
		}},
	{ID: "tuner.chunk", From: tunerChunks, Says: "getChunkSize, if there is one, succeeds and leaves at least a grain of Simple, of 512 bytes: NCCL cuts to grains, and divides by what is left",
		Basis: basisLoader, Check: func(e *Env) {
			_, t := e.table(host.FamilyTune)
			if !t.Slots["getChunkSize"] {
				return
			}
			ctx, err := e.communicator(t, "main", 8, 4)
			e.must(err, "init")
			for _, q := range tunerQuestions() {
				r, err := t.Call("main", "getChunkSize", host.Args{"ctx", ctx, "func", q.function, "bytes", q.bytes, "chunk", 1 << 17})
				e.must(err, "getChunkSize")
				if n := r.Int("chunk"); n < tunerGrain {
					e.failf("function %d with %d bytes: chunks of %d bytes", q.function, q.bytes, n)
				}
			}
		}},
}
