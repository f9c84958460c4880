package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"weft/internal/host"
	"weft/internal/rounds"
)

// ping measures half round trips.
type ping struct {
	name string
	run  func(s situation) (p50, p99, cpu float64, err error) // us; CPU of one side per message
	r    *rig
}

// situation in which a message is sent.
type situation struct {
	name  string
	iters int64
	idle  int // us between messages
	burn  int // threads that load the cores
	ahead int // receives posted ahead
	size  int64
}

// pingMemory holds a message of 1 MiB each way, or many small ones.
const pingMemory = 4 << 20

// NCCL posts receives ahead; with one at a time the permission to send is under way together with the message.
var situations = []situation{
	{"hot", 20_000, 0, 0, 1, 8},
	{"hot, 8 ahead", 20_000, 0, 0, 8, 8},
	{"after 1 ms idle", 1_000, 1000, 0, 1, 8},
	{"all cores busy", 2_000, 0, 2, 1, 8},
}

// latency compares an 8-byte ping-pong.
func latency(c *config) error {
	var pings []ping
	var hosts []*host.Host
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
		hosts = append(hosts, r.a, r.b)
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
		noisy := make([]int, len(pings))
		p50, p99, cpu := make([][]float64, len(pings)), make([][]float64, len(pings)), make([][]float64, len(pings))
		for range c.rounds { // the rounds of all tracks alternate
			for i, p := range pings {
				var m, t, u float64
				disturbed, err := calmly(hosts, func() (err error) {
					m, t, u, err = p.under(s)
					return err
				})
				if disturbed {
					noisy[i]++
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, s.name, err)
				}
				p50[i], p99[i], cpu[i] = append(p50[i], m), append(p99[i], t), append(cpu[i], u)
			}
		}
		for i, p := range pings {
			fmt.Printf("  %-16s %-24s p50 %8.2f us (%4.2f)  p99 %8.2f us (%4.2f)  CPU %6.2f us per message %s\n", s.name, p.name,
				rounds.Median(p50[i]), rounds.Median(p50[i])/rounds.Median(p50[0]), rounds.Median(p99[i]), rounds.Median(p99[i])/rounds.Median(p99[0]), rounds.Median(cpu[i]), rounds.Mark(noisy[i]))
		}
	}
	return nil
}

// under runs a ping-pong, with the cores loaded if the situation says so.
func (p ping) under(s situation) (p50, p99, cpu float64, err error) {
	if s.burn > 0 {
		if _, err := p.r.a.Call("main", "proc.burn", host.Args{"threads", s.burn, "ms", 30_000}); err != nil {
			return 0, 0, 0, err
		}
		defer func() {
			_, stop := p.r.a.Call("main", "proc.burn", host.Args{"threads", 0})
			err = errors.Join(err, stop)
		}()
	}
	return p.run(s)
}

// figures takes the CPU of the calling thread while others load the cores, of the whole process otherwise.
func figures(r *host.Reply, s situation, err error) (p50, p99, cpu float64, _ error) {
	cpu = r.Float("utime") + r.Float("stime")
	if s.burn > 0 {
		cpu = r.Float("thread")
	}
	return r.Float("p50") / 1e3, r.Float("p99") / 1e3, cpu / 1e3 / float64(s.iters), err
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
	return ping{"plain C loop", func(s situation) (float64, float64, float64, error) {
		common := host.Args{"size", 8, "iters", s.iters, "warm", s.iters / 10, "idle", s.idle, "limit", limit / 2}
		ra, _, err := r.both("plain.lat", append(host.Args{"role", "ping", "fd", fdA, "buf", bufA}, common...),
			"plain.lat", append(host.Args{"role", "pong", "fd", fdB, "buf", bufB}, common...))
		return figures(ra, s, err)
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
		buf, smh, err := buffer(h, n, send, pingMemory)
		if err != nil {
			return nil, err
		}
		rmh, err := n.RegMr(recv, buf, pingMemory)
		return host.Args{"role", role, "send", send, "recv", recv, "smh", smh, "rmh", rmh, "buf", buf}, err
	}
	a, errA := side(r.a, r.na, "ping", to, here)
	b, errB := side(r.b, r.nb, "pong", back, there)
	if err := errors.Join(errA, errB); err != nil {
		return ping{}, err
	}
	return ping{name, func(s situation) (float64, float64, float64, error) {
		common := host.Args{"iters", s.iters, "warm", s.iters / 10, "idle", s.idle, "limit", limit / 2, "ahead", s.ahead, "size", s.size}
		ra, _, err := r.both("lat", append(append(host.Args{}, a...), common...), "lat", append(append(host.Args{}, b...), common...))
		return figures(ra, s, err)
	}, r}, nil
}
