package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weft/internal/simverbs"
)

// TestEveryVerbsCallFailsAtInit makes every call fail that opening the devices needs:
// init succeeds, says what is missing, and connections work, over TCP if they must.
func TestEveryVerbsCallFailsAtInit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call  string
		loses bool     // the device cannot be used without it
		also  []string // further faults
	}{
		{"fork_init", false, nil}, {"get_device_list", true, nil}, {"open_device", true, nil}, {"query_device", true, nil}, {"query_port", true, nil},
		{"query_port_speed", false, nil}, {"query_gid_ex", true, nil}, {"alloc_pd", false, nil}, {"reg_dmabuf_mr", false, nil},
		{"close_device", true, []string{"fail query_port 1 EIO"}},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			other := w.start("simB", newest, "WEFT_TIMEOUT=4")
			places := 0
			for n := 1; atInit(w, other, c.call, n, c.loses, c.also...); n += 1 + n/4 {
				places++
			}
			if places == 0 {
				t.Errorf("%s is never called", c.call)
			}
			t.Logf("failed at %d places", places)
		})
	}
}

// atInit has a process of its own meet the n-th call's failure; false: there is no n-th.
func atInit(w *world, other *peer, call string, n int, loses bool, also ...string) bool {
	t, what := w.t, fmt.Sprintf("%s, call %d, fails", call, n)
	p := bare(t, what, append(w.env("simA", append(also, fmt.Sprintf("fail %s %d EIO", call, n))...), "WEFT_TIMEOUT=4")...)
	defer p.h.Kill()
	p.load(newest)
	if err := p.n.Init(); err != nil {
		t.Errorf("%s: %v", what, err)
		return true
	}
	lines := said(p, 0)
	// A process that gave up the library may have left its control socket.
	fired := true
	if o, err := w.Count(p.h.PID); err == nil {
		fired = o.Failed > len(also)
	}
	if !fired {
		return false
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "ibv_"+strings.TrimSuffix(call, "_ex")) {
		t.Errorf("%s: nothing says so:\n%s", what, text)
	}
	join(p, other, 1<<20).move(traffic{size: 100_000, count: 4, window: 2, limit: 20 * time.Second})
	if by := byRDMA(p, 0); (by > 0) == loses {
		t.Errorf("%s: %d comms by RDMA:\n%s", what, by, strings.Join(said(p, 0), "\n"))
	}
	return true
}
