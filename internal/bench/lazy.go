package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
	"weft/internal/simverbs"
)

// lazyCases are the ways to have 16 queue pairs on each connection.
var lazyCases = []struct{ name, setting string }{
	{"all at connect", "WEFT_LAZY=off"},
	{"in the background", "WEFT_LAZY=background"},
	{"on demand", "WEFT_LAZY=demand"},
}

// connectsWorld is one in which connects are measured. Memory stays where it is
// when it is registered there: to move it, and to look for its mapping among
// those of thousands of connections, is dear, and no card does either.
func connectsWorld(devices ...simverbs.Device) simverbs.World {
	share := false
	return simverbs.World{Name: fmt.Sprintf("bench-%d", os.Getpid()), Share: &share, Devices: devices}
}

// lazyLanes measures what queue pairs and ports that come later spare 1,000
// connections, also where each creation and transition takes 1 ms more than it does.
func lazyLanes(c *config) error {
	const lanes, n = 16, 1000
	for _, devices := range []int{1, 4} {
		for _, cost := range []int{0, 1000} {
			fmt.Printf("  %d QPs per connection, on %d device%s; creations and transitions cost %d us more:\n", lanes, devices, map[bool]string{true: "s in one"}[devices > 1], cost)
			for _, l := range lazyCases {
				w := connectsWorld()
				for i := range devices {
					w.Devices = append(w.Devices, simverbs.Device{Name: fmt.Sprintf("sim%d", i), GIDs: []string{fmt.Sprintf("10.77.%d.1/24", i)}, MaxQP: 1 << 15})
				}
				env, err := w.Env(filepath.Join(c.dist, "simverbs"), "", fmt.Sprintf("slow create_qp %d", cost), fmt.Sprintf("slow modify_qp %d", cost))
				if err != nil {
					return err
				}
				err = c.lazyRow(w, l.name, n, append(env, fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes/devices), l.setting))
				if err = errors.Join(err, w.Remove()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *config) lazyRow(w simverbs.World, name string, n int64, env []string) error {
	r, err := c.newCrowdRig(c.library(), env...)
	if err != nil {
		return err
	}
	defer r.close()
	if members := len(w.Devices); members > 1 {
		for _, n := range []*host.Net{r.na, r.nb} {
			if r.dev, err = n.MakeVDevice([]int{0, 1, 2, 3}[:members]); err != nil {
				return err
			}
		}
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
	fmt.Printf("    %-18s single connect p50 %.1f ms; %d at once %.2f s; then %d QPs, %.1f KiB per connection\n",
		name, rounds.Median(single), n, took.Seconds(), has.QPs, float64(after.RSS-before.RSS)/float64(n)/1024)
	if err := s.move(); err != nil {
		return err
	}
	return s.close()
}
