package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
	"weft/internal/simverbs"
)

// reuseCases are what connections may have of those that were closed before.
var reuseCases = []struct {
	name     string
	settings []string
}{
	{"new, all at connect", []string{"WEFT_LAZY=off", "WEFT_POOL=0"}},
	{"new, in the background", []string{"WEFT_LAZY=background", "WEFT_POOL=0"}},
	{"256 kept (the default)", nil},
	{"1,024 kept", []string{"WEFT_POOL=1024"}},
}

// reuse measures what it spares 1,000 connections to have the queue pairs of
// those that were closed, where from then on each creation and each transition
// takes 1 ms more.
func reuse(c *config) error {
	const lanes, n = 16, 1000
	dist := filepath.Join(c.dist, "simverbs")
	w := connectsWorld(simverbs.Device{Name: "sim0", GIDs: []string{"10.77.0.1/24"}, MaxQP: 1 << 16})
	env, err := w.Env(dist, "")
	if err != nil {
		return err
	}
	env = append(env, fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes))
	fmt.Printf("  %d QPs per connection; connected again, creations and transitions cost 1000 us more; one connection stays meanwhile:\n", lanes)
	for _, r := range reuseCases {
		if err := c.reuseRow(w, r.name, n, append(env[:len(env):len(env)], r.settings...)); err != nil {
			_ = w.Remove()
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if err := w.Remove(); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) reuseRow(w simverbs.World, name string, n int64, env []string) error {
	r, err := c.newCrowdRig(c.library(), env...)
	if err != nil {
		return err
	}
	defer r.close()
	stays, err := newStorm(r, 1)
	if err != nil {
		return err
	}
	if _, _, err := stays.connect(1); err != nil {
		return err
	}
	before, err := r.a.Stat()
	if err != nil {
		return err
	}
	s, _, err := r.crowd(n)
	if err != nil {
		return err
	}
	if _, err := still(w, r.a.PID); err != nil { // what comes later has come
		return err
	}
	open, err := r.a.Stat()
	if err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	qps, err := still(w, r.a.PID)
	if err != nil {
		return err
	}
	closed, err := r.a.Stat()
	if err != nil {
		return err
	}
	for _, pid := range []int{r.a.PID, r.b.PID} {
		if err := w.Control(pid, "slow create_qp 1000", "slow modify_qp 1000"); err != nil {
			return err
		}
	}
	single, err := r.connects(20)
	if err != nil {
		return err
	}
	mark, cpu := len(r.b.Logs()), r.cpu()
	_, took, err := r.crowd(n)
	if err != nil {
		return err
	}
	cpu, had := r.cpu()-cpu, 0
	for _, l := range r.b.Logs()[mark:] {
		had += strings.Count(l.Text, "of an earlier connection")
	}
	each := func(to int64) float64 { return float64(to-before.RSS) / float64(n) / 1024 }
	fmt.Printf("    %-24s one after the other p50 %.1f ms; %d at once %.2f s (%.2f s of CPU, both sides), %d with QPs of closed ones; %.1f KiB per connection, %.1f once it is closed, %d QPs then\n",
		name, rounds.Median(single), n, took.Seconds(), cpu.Seconds(), had, each(open.RSS), each(closed.RSS), qps)
	return nil
}

// cpu is the time that both processes have had a processor.
func (r *rig) cpu() (all time.Duration) {
	for _, h := range []*host.Host{r.a, r.b} {
		if s, err := h.Stat(); err == nil {
			all += s.User + s.System
		}
	}
	return all
}

// crowd makes n connections at once, and has each move bytes.
func (r *rig) crowd(n int64) (s *crowd, took time.Duration, err error) {
	if s, err = newStorm(r, n); err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if _, _, err = s.connect(n); err != nil {
		return nil, 0, err
	}
	took = time.Since(start)
	return s, took, s.move()
}

// still waits until a process has as many queue pairs as a second ago, and
// returns how many.
func still(w simverbs.World, pid int) (int, error) {
	const quiet = time.Second
	last, since := -1, time.Now()
	for end := time.Now().Add(limit); ; time.Sleep(quiet / 20) {
		has, err := w.Count(pid)
		switch {
		case err != nil:
			return 0, err
		case has.QPs != last:
			last, since = has.QPs, time.Now()
		case time.Since(since) > quiet:
			return last, nil
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("%d QPs, and their number changes still after %v", last, limit)
		}
	}
}
