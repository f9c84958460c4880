package main

import (
	"fmt"
	"testing"

	"weft/internal/build"
	"weft/internal/simverbs"
)

// TestTableCalls plays a few rounds; make fuzz plays as many as there is time for.
func TestTableCalls(t *testing.T) {
	p := programs{scratch: t.TempDir()}
	var err error
	if p.lib, err = build.Library(); err != nil {
		t.Fatal(err)
	}
	if p.host, err = build.Host(); err != nil {
		t.Fatal(err)
	}
	if p.sim, err = simverbs.Dist(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2 * len(tables)) {
		r := round{seed: seed, calls: 20000}
		t.Run(fmt.Sprintf("v%d rdma=%t", r.version(), r.rdma()), func(t *testing.T) {
			var c counts
			if err := p.run(r, &c); err != nil {
				t.Fatalf("%v\nagain: make fuzz ONLY=tables SEED=%d", err, seed)
			}
			if c.messages == 0 || c.refused == 0 || c.opened < 2 {
				t.Errorf("little was tried: %s", c)
			}
			t.Log(c)
		})
	}
}
