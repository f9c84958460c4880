package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weft/internal/simverbs"
)

// lazyCases are the ways to have 16 queue pairs on each connection.
var lazyCases = []struct{ name, setting string }{
	{"all at connect", "WEFT_LAZY=off"},
	{"in the background", "WEFT_LAZY=background"},
	{"on demand", "WEFT_LAZY=demand"},
}

// lazyLanes measures what queue pairs that come later spare 1,000 connections
// where each costs: a creation or a transition takes 1 ms more than it does.
func lazyLanes(c *config) error {
	const lanes, n = 16, 1000
	dist := filepath.Join(c.dist, "simverbs")
	w := simverbs.World{Name: fmt.Sprintf("bench-%d", os.Getpid()), Devices: []simverbs.Device{{Name: "sim0", GIDs: []string{"10.77.0.1/24"}, MaxQP: 1 << 15}}}
	for _, cost := range []int{0, 1000} {
		fmt.Printf("  %d queue pairs a connection, creations and transitions cost %d us more:\n", lanes, cost)
		env, err := w.Env(dist, "", fmt.Sprintf("slow create_qp %d", cost), fmt.Sprintf("slow modify_qp %d", cost))
		if err != nil {
			return err
		}
		for _, l := range lazyCases {
			if err := c.lazyRow(w, l.name, n, append(env, fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes), l.setting)); err != nil {
				_ = w.Remove()
				return err
			}
			if err := w.Remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *config) lazyRow(w simverbs.World, name string, n int64, env []string) error {
	r, err := c.newRig(c.library(), env...)
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := r.a.RaiseFiles(); err != nil {
		return err
	}
	if _, err := r.b.RaiseFiles(); err != nil {
		return err
	}
	single, err := r.connects(20)
	if err != nil {
		return err
	}
	before, err := r.a.Stat()
	if err != nil {
		return err
	}
	s, err := newStorm(r, n)
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, _, err := s.connect(n); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := r.a.Stat()
	if err != nil {
		return err
	}
	has, err := w.Count(r.a.PID)
	if err != nil {
		return err
	}
	fmt.Printf("    %-18s single connect p50 %.1f ms; %d at once %.2f s; then %d queue pairs, %.1f KiB a connection\n",
		name, median(single), n, took.Seconds(), has.QPs, float64(after.RSS-before.RSS)/float64(n)/1024)
	if err := s.move(); err != nil {
		return err
	}
	return s.close()
}
