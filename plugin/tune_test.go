package plugin

import (
	"slices"
	"strings"
	"testing"

	"weft/abi"
	"weft/tuner"
)

// TestTuner begins communicators with and without the wish for collNet: what is vetoed is kept for C, and said in the
// host's log.
func TestTuner(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		full bool
		ctx  uintptr
		info int
		warn int
	}{
		{name: "not wanted"},
		{name: "off", env: map[string]string{"WEFT_COLLNET": "0"}},
		{name: "wanted", env: map[string]string{"WEFT_COLLNET": "1"}, ctx: 1, info: 1},
		{name: "no room", env: map[string]string{"WEFT_COLLNET": "1"}, full: true, warn: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.env)
			b.host.full = c.full
			ctx := uintptr(77)
			if err := b.tuner.Init(&abi.TunerInitArgs{Table: abi.TunerNewest, Ctx: &ctx, NRanks: 8, NNodes: 4, LogFunction: nccl}); err != nil {
				t.Fatal(err)
			}
			if ctx != c.ctx || len(b.host.vetoes) != int(c.ctx) {
				t.Errorf("context %d, %d sets of vetoes; want %d", ctx, len(b.host.vetoes), c.ctx)
			}
			if info, warn := b.host.lines(levelInfo, "CollNet on 4 nodes: "), b.host.lines(levelWarn); len(info) != c.info || len(warn) != c.warn {
				t.Errorf("says %q, warns %q", info, warn)
			}
			if err := b.tuner.Finalize(&abi.TunerFinalizeArgs{Context: ctx}); err != nil || !slices.Equal(b.host.dropped, []uintptr{ctx}) {
				t.Errorf("%v; %v dropped, want %d", err, b.host.dropped, ctx)
			}
		})
	}
}

// TestTunerKnowsWhatRanksMeasured: all ranks of a communicator whose hosts have one GPU each expect the same, of their own paths.
func TestTunerKnowsWhatRanksMeasured(t *testing.T) {
	const ranks = 3
	all, _ := overLoopback(t, ranks, abi.NetNewest)
	for _, c := range []struct {
		name       string
		comm, gpus uint64
		how        string
	}{
		{"its own communicator", commOfBench, ranks, "measured"},
		{"several GPUs a host", commOfBench, 2 * ranks, "assumed"},
		{"another communicator", commOfBench + 1, ranks, "assumed"},
		{"a host that tells none", 0, ranks, "assumed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for r, b := range all {
				var ctx uintptr
				if err := b.tuner.Init(&abi.TunerInitArgs{Table: abi.TunerNewest, Ctx: &ctx, CommId: c.comm, NRanks: c.gpus, NNodes: ranks, LogFunction: nccl}); err != nil {
					t.Fatal(err)
				}
				said := b.host.lines(levelInfo, "CollNet on 3 nodes: ")
				if last := said[len(said)-1].text; !strings.Contains(last, c.how+")") {
					t.Errorf("rank %d: %q, want what is %s", r, last, c.how)
				}
				if mine, first := b.host.vetoes[len(b.host.vetoes)-1], all[0].host.vetoes[len(all[0].host.vetoes)-1]; r > 0 && mine != first {
					t.Errorf("rank %d forbids %v, rank 0 %v", r, mine, first)
				}
			}
		})
	}
}

// TestVetoesAreGivenBack: equal sets are one, which stays until the last communicator that has it ends; then its place is free.
func TestVetoesAreGivenBack(t *testing.T) {
	set := func(n int) *tuner.Vetoes { return &tuner.Vetoes{{{uint64(n)}}} }
	var c cHost
	first, same, other := c.KeepVetoes(set(1)), c.KeepVetoes(set(1)), c.KeepVetoes(set(2))
	if first == 0 || same != first || other == 0 || other == first {
		t.Fatalf("equal sets are %d and %d, another is %d", first, same, other)
	}
	c.DropVetoes(first)
	if got := c.KeepVetoes(set(3)); got == first {
		t.Error("a set that one communicator still has was given away")
	}
	c.DropVetoes(first)
	c.DropVetoes(0) // of a communicator without vetoes
	var all []uintptr
	for n := 4; ; n++ {
		s := c.KeepVetoes(set(n))
		if s == 0 {
			break
		}
		all = append(all, s)
	}
	if !slices.Contains(all, first) {
		t.Error("the place of a set that nobody has is not used again")
	}
	c.DropVetoes(all[0])
	if got := c.KeepVetoes(set(1)); got != all[0] {
		t.Errorf("with one place free, a set is kept at %d, not %d", got, all[0])
	}
	for _, s := range all {
		c.DropVetoes(s)
	}
}
