package plugin

import (
	"testing"

	"weft/abi"
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
			if err := b.tuner.Finalize(&abi.TunerFinalizeArgs{Context: ctx}); err != nil {
				t.Error(err)
			}
		})
	}
}
