package main

import (
	"fmt"
	"path/filepath"

	"weft/internal/host"
	"weft/internal/rounds"
)

// overRDMA measures two processes on two cores over simulated verbs: messages a
// second of 8 bytes, and ping-pong of three sizes.
func overRDMA(c *config) error {
	env, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	for _, lanes := range []int{1, 4, 8} {
		if err := c.rdmaRows(lanes, append(lanesEnv(lanes), env...)); err != nil {
			return err
		}
	}
	return nil
}

type rdmaRow struct {
	name string
	rate func() (float64, error) // messages a second
	ping ping
}

func (c *config) rdmaRows(lanes int, env []string) error {
	var rows []rdmaRow
	var hosts []*host.Host
	for _, plugin := range c.rdmaPlugins() {
		r, err := c.newRig(plugin, env...)
		if err != nil {
			return err
		}
		defer r.close()
		hosts = append(hosts, r.a, r.b)
		row := rdmaRow{name: filepath.Base(plugin)}
		if row.rate, err = r.messageRate(); err != nil {
			return err
		}
		if row.ping, err = r.pluginPing(row.name); err != nil {
			return err
		}
		rows = append(rows, row)
	}
	rates, noisy := make([][]float64, len(rows)), make([]int, len(rows))
	for range c.rounds {
		for i, row := range rows {
			disturbed, err := calmly(hosts, func() error {
				v, err := row.rate()
				rates[i] = append(rates[i], v)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			if disturbed {
				noisy[i]++
			}
		}
	}
	for i, row := range rows {
		fmt.Printf("  %d lane(s)  %-26s %6.2f million messages of 8 bytes per second (%4.2f)%s\n", lanes, row.name, rounds.Median(rates[i])/1e6, rounds.Median(rates[i])/rounds.Median(rates[len(rows)-1]), rounds.Mark(noisy[i]))
	}
	for _, size := range []int64{8, 64 << 10, 1 << 20} {
		s := situation{name: "", iters: min(5_000, 100<<20/size), ahead: 1, size: size}
		p50, p99 := make([][]float64, len(rows)), make([][]float64, len(rows))
		clear(noisy)
		for range c.rounds {
			for i, row := range rows {
				var m, t float64
				disturbed, err := calmly(hosts, func() (err error) {
					m, t, _, err = row.ping.run(s)
					return err
				})
				if err != nil {
					return fmt.Errorf("%s, %d bytes: %w", row.name, size, err)
				}
				if disturbed {
					noisy[i]++
				}
				p50[i], p99[i] = append(p50[i], m), append(p99[i], t)
			}
		}
		for i, row := range rows {
			fmt.Printf("  %d lane(s)  %-26s ping-pong of %7d bytes: p50 %8.2f us (%4.2f)  p99 %8.2f us (%4.2f)%s\n", lanes, row.name, size,
				rounds.Median(p50[i]), rounds.Median(p50[i])/rounds.Median(p50[len(rows)-1]), rounds.Median(p99[i]), rounds.Median(p99[i])/rounds.Median(p99[len(rows)-1]), rounds.Mark(noisy[i]))
		}
	}
	return nil
}

// messageRate sends small messages one way, eight at a time.
func (r *rig) messageRate() (func() (float64, error), error) {
	send, recv, err := connect(r.na, r.nb, r.a, r.b)
	if err != nil {
		return nil, err
	}
	bufA, mhA, err := buffer(r.a, r.na, send, 4096)
	if err != nil {
		return nil, err
	}
	bufB, mhB, err := buffer(r.b, r.nb, recv, 4096)
	if err != nil {
		return nil, err
	}
	const count = 100_000
	return func() (float64, error) {
		common := host.Args{"size", 8, "span", 4096, "count", count, "limit", limit / 2}
		_, rb, err := r.both("bw", append(host.Args{"role", "send", "comm", send, "mh", mhA, "buf", bufA}, common...),
			"bw", append(host.Args{"role", "recv", "comm", recv, "mh", mhB, "buf", bufB}, common...))
		return count / rb.Float("us") * 1e6, err
	}, nil
}
