package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"weft/internal/host"
)

// ping measures half round trips.
type ping struct {
	name string
	run  func(iters int64, idle int) (p50, p99, cpu float64, err error) // us; CPU of one side per message
	r    *rig
}

// situations in which a message is sent.
var situations = []struct {
	name  string
	iters int64
	idle  int // us between messages
	burn  int // threads that load the cores
}{
	{"hot", 50_000, 0, 0},
	{"after 1 ms idle", 1_000, 1000, 0},
	{"all cores busy", 2_000, 0, 2},
}

// latency compares an 8-byte ping-pong.
func latency(c *config) error {
	var pings []ping
	defer func() {
		for _, p := range pings {
			p.r.close()
		}
	}()
	for i, plugin := range c.plugins() {
		r, err := c.newRig(plugin)
		if err != nil {
			return err
		}
		if i == 0 {
			p, err := r.plainPing()
			if err != nil {
				r.close()
				return err
			}
			pings = append(pings, p)
		}
		p, err := r.pluginPing(filepath.Base(plugin))
		if err != nil {
			r.close()
			return err
		}
		pings = append(pings, p)
	}
	for _, s := range situations {
		for _, p := range pings {
			var p50, p99, cpu []float64
			for range c.rounds {
				if s.burn > 0 {
					if _, err := p.r.a.Call("main", "proc.burn", host.Args{"threads", s.burn, "ms", 30_000}); err != nil {
						return err
					}
				}
				m, t, u, err := p.run(s.iters, s.idle)
				if s.burn > 0 {
					_, stop := p.r.a.Call("main", "proc.burn", host.Args{"threads", 0})
					err = errors.Join(err, stop)
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, s.name, err)
				}
				p50, p99, cpu = append(p50, m), append(p99, t), append(cpu, u)
			}
			fmt.Printf("  %-16s %-24s p50 %8.2f us   p99 %8.2f us   CPU %6.2f us a message\n", s.name, p.name, median(p50), median(p99), median(cpu))
		}
	}
	return nil
}

func figures(r *host.Reply, iters int64, err error) (p50, p99, cpu float64, _ error) {
	return r.Float("p50") / 1e3, r.Float("p99") / 1e3, (r.Float("utime") + r.Float("stime")) / 1e3 / float64(iters), err
}

func (r *rig) plainPing() (ping, error) {
	fdA, fdB, err := r.plain()
	if err != nil {
		return ping{}, err
	}
	bufA, err := r.a.Alloc(4096)
	if err != nil {
		return ping{}, err
	}
	bufB, err := r.b.Alloc(4096)
	if err != nil {
		return ping{}, err
	}
	return ping{"plain C loop", func(iters int64, idle int) (float64, float64, float64, error) {
		common := host.Args{"size", 8, "iters", iters, "warm", iters / 10, "idle", idle}
		ra, _, err := r.both("plain.lat", append(host.Args{"role", "ping", "fd", fdA, "buf", bufA}, common...),
			"plain.lat", append(host.Args{"role", "pong", "fd", fdB, "buf", bufB}, common...))
		return figures(ra, iters, err)
	}, r}, nil
}

func (r *rig) pluginPing(name string) (ping, error) {
	to, there, err := connect(r.na, r.nb, r.a, r.b)
	if err != nil {
		return ping{}, err
	}
	back, here, err := connect(r.nb, r.na, r.b, r.a)
	if err != nil {
		return ping{}, err
	}
	side := func(h *host.Host, n *host.Net, role string, send, recv host.Ptr) (host.Args, error) {
		buf, smh, err := buffer(h, n, send, 4096)
		if err != nil {
			return nil, err
		}
		rmh, err := n.RegMr(recv, buf, 4096)
		return host.Args{"role", role, "send", send, "recv", recv, "smh", smh, "rmh", rmh, "buf", buf, "size", 8}, err
	}
	a, errA := side(r.a, r.na, "ping", to, here)
	b, errB := side(r.b, r.nb, "pong", back, there)
	if err := errors.Join(errA, errB); err != nil {
		return ping{}, err
	}
	return ping{name, func(iters int64, idle int) (float64, float64, float64, error) {
		common := host.Args{"iters", iters, "warm", iters / 10, "idle", idle}
		ra, _, err := r.both("lat", append(append(host.Args{}, a...), common...), "lat", append(append(host.Args{}, b...), common...))
		return figures(ra, iters, err)
	}, r}, nil
}
