package faults

import (
	"strings"
	"testing"

	"weft/internal/simverbs"
)

// TestRoutedFabric rehearses a fabric of /31 links and routers beside a storage
// network that all hosts share:
//
//	left: fab0 10.10.0.0/31 === routers === 10.10.0.2/31 fab0 :right
//	      stor0 10.9.6.1/24 --------------- 10.9.6.2/24 stor0
//
// NCCL asks for device 0, fab0: it carries the bytes as long as a route is there.
// Without one stor0 does, and a warning names both speeds.
func TestRoutedFabric(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		routes []string
		over   string
		warns  []string
	}{
		{"with_its_routers", []string{"10.10.0.0/16 10.10.0.0/16"}, "fab0", nil},
		{"without", nil, "stor0", []string{"stor0 to stor0 (25 Gb/s)", "fab0 to fab0 (400 Gb/s), which were asked for"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			w.Routes = c.routes
			w.Devices = nil
			for i, node := range []string{"left", "right"} {
				w.Devices = append(w.Devices,
					simverbs.Device{Name: "fab0", Node: node, GIDs: []string{[]string{"10.10.0.0/31", "10.10.0.2/31"}[i]}, Speed: 400_000},
					simverbs.Device{Name: "stor0", Node: node, GIDs: []string{[]string{"10.9.6.1/24", "10.9.6.2/24"}[i]}, Speed: 25_000})
			}
			a, b := w.start("left", newest, "WEFT_TIMEOUT=4"), w.start("right", newest, "WEFT_TIMEOUT=4")
			join(a, b, 16<<20).move(traffic{size: 1 << 20, count: 20, window: 4})
			for _, p := range []*peer{a, b} {
				over := false
				for _, l := range said(p, 0) {
					over = over || strings.Contains(l, " over "+c.over+" (GIDs ")
				}
				if !over {
					t.Errorf("not over %s: %q", c.over, said(p, 0))
				}
			}
			all := strings.Join(said(a, 0), "\n")
			for _, text := range c.warns {
				if !strings.Contains(all, text) {
					t.Errorf("nothing says %q: %s", text, all)
				}
			}
			if len(c.warns) == 0 && strings.Contains(all, "asked for") {
				t.Errorf("%s", all)
			}
		})
	}
}
