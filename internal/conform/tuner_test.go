package conform

import (
	"slices"
	"testing"
	"time"

	"weft/abi"
	"weft/collnet/choose"
	"weft/internal/build"
	"weft/internal/host"
	"weft/tuner"
)

// tuned asks the library's tuner, under some environment, for a communicator of
// that many nodes; vetoed are the algorithms whose costs became NCCL_ALGO_PROTO_IGNORE.
func tuned(t *testing.T, version, nodes int, env []string, each func(q question, vetoed []int)) {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	check := func(e *Env) {
		_, table := e.table(host.FamilyTune)
		r, err := table.Call("main", "init", host.Args{"nranks", nodes, "nnodes", nodes})
		e.must(err, "init")
		if r.Int("changed") != 0 {
			e.failf("init changes NCCL's constants")
		}
		for _, q := range tunerQuestions() {
			a := e.ask(table, r.Ptr("ctx"), q)
			if a.ch != 0 || version < tunerCosts && (a.algo != abi.NCCL_ALGO_UNDEF || a.proto != abi.NCCL_PROTO_UNDEF) {
				e.failf("%d channels, algorithm %d, protocol %d are chosen", a.ch, a.algo, a.proto)
			}
			var vetoed []int
			for i, cost := range a.costs {
				switch algo := i / tunerProtos; {
				case cost == float64(q.costs[i]):
				case cost != tunerIgnore:
					e.failf("cost %d becomes %g", q.costs[i], cost)
				case !slices.Contains(vetoed, algo):
					vetoed = append(vetoed, algo)
				}
			}
			each(q, vetoed)
		}
	}
	o := Outcome{Family: host.FamilyTune, Version: version, Rule: &Rule{ID: t.Name(), Check: check}}
	(&runner{o: &Options{Lib: lib, Host: hostProgram(t), Env: env, Patience: 10 * time.Second}}).judge(&o)
	if !o.OK() {
		t.Error(o.Fail)
	}
}

// TestTunerIsQuiet requires that nothing is changed for who does not want collNet, on one node, and in tables without costs;
// and that otherwise CollNet alone is vetoed.
func TestTunerIsQuiet(t *testing.T) {
	first, last := host.FamilyTune.Versions()
	wanted := []string{"WEFT_COLLNET=1"}
	for v := first; v <= last; v++ {
		for _, c := range []struct {
			env    []string
			nodes  int
			vetoes bool
		}{{nil, 4, false}, {[]string{"WEFT_COLLNET=0"}, 4, false}, {wanted, 1, false}, {wanted, 4, v >= tunerCosts}} {
			some := false
			tuned(t, v, c.nodes, c.env, func(q question, vetoed []int) {
				some = some || len(vetoed) > 0
				for _, a := range vetoed {
					if a != abi.NCCL_ALGO_COLLNET_CHAIN && a != abi.NCCL_ALGO_COLLNET_DIRECT {
						t.Errorf("v%d, %v: function %d with %d bytes: algorithm %d is vetoed", v, c.env, q.function, q.bytes, a)
					}
				}
			})
			if some != c.vetoes {
				t.Errorf("v%d, %v, %d nodes: vetoes: %t", v, c.env, c.nodes, some)
			}
		}
	}
}

// TestTunerWeighs has each of NCCL's algorithms and protocols be the cheapest in turn: CollNet and NVLS are vetoed by what the
// model expects of that one, and beside those that it does not know, wherever they are beside any.
func TestTunerWeighs(t *testing.T) {
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	const nodes, algos = 8, abi.NCCL_ALGO_PAT + 1
	expect := tuner.Model(tuner.Comm{Ranks: nodes, Nodes: nodes, Table: abi.TunerNewest}, choose.Fabric{N: nodes, Path: tuner.Assumed, Copied: true})
	gains := func(bytes, algo, proto int) bool {
		return !slices.ContainsFunc(expect(abi.FuncAllReduce, int64(bytes)), func(t tuner.Times) bool {
			return float64(t.Otherwise[algo][proto]) < 1.05*float64(t.CollNet)
		})
	}
	some := map[bool]int{}
	check := func(e *Env) {
		_, table := e.table(host.FamilyTune)
		r, err := table.Call("main", "init", host.Args{"nranks", nodes, "nnodes", nodes})
		e.must(err, "init")
		for shift := 3; shift <= 30; shift++ {
			for algo := range algos {
				if algo != abi.NCCL_ALGO_TREE && algo != abi.NCCL_ALGO_RING && algo != abi.NCCL_ALGO_NVLS_TREE && algo != abi.NCCL_ALGO_PAT {
					continue
				}
				for proto := range tunerProtos {
					q := question{int(abi.FuncAllReduce), 1<<shift + 1, make([]int, algos*tunerProtos)}
					for i := range q.costs {
						q.costs[i] = 100
					}
					q.costs[algo*tunerProtos+proto] = 50
					allowed := true
					for a := range tuner.Alternatives {
						for p := range tunerProtos {
							if (algo >= tuner.Alternatives || a == algo && p == proto) && !(gains(1<<shift, a, p) && gains(2<<shift-1, a, p)) {
								allowed = false
							}
						}
					}
					some[allowed]++
					a := e.ask(table, r.Ptr("ctx"), q)
					for i, cost := range a.costs {
						want := float64(q.costs[i])
						if of := i / tunerProtos; !allowed && (of == abi.NCCL_ALGO_COLLNET_DIRECT || of == abi.NCCL_ALGO_COLLNET_CHAIN || of == abi.NCCL_ALGO_NVLS) {
							want = tunerIgnore
						}
						if cost != want {
							e.failf("%d bytes, algorithm %d with protocol %d is cheapest: cost %d becomes %g, want %g", q.bytes, algo, proto, i, cost, want)
						}
					}
				}
			}
		}
	}
	o := Outcome{Family: host.FamilyTune, Version: abi.TunerNewest, Rule: &Rule{ID: t.Name(), Check: check}}
	(&runner{o: &Options{Lib: lib, Host: hostProgram(t), Env: []string{"WEFT_COLLNET=1"}, Patience: 20 * time.Second}}).judge(&o)
	if !o.OK() {
		t.Error(o.Fail)
	}
	if some[true] == 0 || some[false] == 0 {
		t.Errorf("CollNet is allowed and vetoed so often: %v", some)
	}
}

// TestTunerChunks: where collNet is wanted, CollNetChain has no larger chunks than an all-reduce needs; all other chunks stay
// as NCCL made them.
func TestTunerChunks(t *testing.T) {
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	const chain, ring, large = abi.NCCL_ALGO_COLLNET_CHAIN, abi.NCCL_ALGO_RING, 64 << 10
	for _, wanted := range []string{"0", "1"} {
		check := func(e *Env) {
			_, table := e.table(host.FamilyTune)
			r, err := table.Call("main", "init", host.Args{"nranks", 4, "nnodes", 4})
			e.must(err, "init")
			for _, c := range []struct{ function, algo, bytes, channels, want int }{
				{int(abi.FuncAllReduce), chain, 0, 1, large},
				{int(abi.FuncAllReduce), chain, 1, 1, 512},
				{int(abi.FuncAllReduce), chain, 512, 1, 512},
				{int(abi.FuncAllReduce), chain, 513, 1, 1024},
				{int(abi.FuncAllReduce), chain, 10000, 2, 5120},
				{int(abi.FuncAllReduce), chain, 10000, 0, large},
				{int(abi.FuncAllReduce), chain, 65500, 1, large},
				{int(abi.FuncAllReduce), chain, 1 << 40, 2, large},
				{int(abi.FuncAllReduce), ring, 8, 1, large},
				{int(abi.FuncAllGather), chain, 8, 1, large},
			} {
				if wanted == "0" {
					c.want = large
				}
				r, err := table.Call("main", "getChunkSize", host.Args{"ctx", r.Ptr("ctx"), "func", c.function, "bytes", c.bytes, "algo", c.algo, "channels", c.channels, "chunk", large})
				e.must(err, "getChunkSize")
				if got := r.Int("chunk"); got != int64(c.want) {
					e.failf("WEFT_COLLNET=%s, %+v: %d", wanted, c, got)
				}
			}
		}
		o := Outcome{Family: host.FamilyTune, Version: tunerChunks, Rule: &Rule{ID: t.Name(), Check: check}}
		(&runner{o: &Options{Lib: lib, Host: hostProgram(t), Env: []string{"WEFT_COLLNET=" + wanted}, Patience: 10 * time.Second}}).judge(&o)
		if !o.OK() {
			t.Error(o.Fail)
		}
	}
}
