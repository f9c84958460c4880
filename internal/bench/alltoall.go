package main

import (
	"fmt"
	"path/filepath"

	"weft/internal/host"
	"weft/internal/rounds"
)

// allToAll compares the time of a step in which every one of some connections sends a message and receives one: of all that are
// open, and of two among them, which must cost no more for the others.
func allToAll(c *config) error { return c.allToAll(c.plugins()) }

// rdmaAllToAll is the same over simulated verbs.
func rdmaAllToAll(c *config) error {
	env, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	return c.allToAll(c.rdmaPlugins(), env...)
}

// exchange is an all-to-all of one plugin: connections both ways between two processes.
type exchange struct {
	name     string
	to, back *crowd
}

func (c *config) allToAll(plugins []string, env ...string) error {
	fmt.Printf("%6s %6s %8s", "open", "moving", "bytes")
	for _, plugin := range plugins {
		fmt.Printf("  %38s", filepath.Base(plugin))
	}
	fmt.Println("   (us a step: p50, p99; CPU us a step; in brackets: this one's p50 beside the library's in the same round; ~: disturbed)")
	for _, open := range []int64{1, 2, 8, 32, 128} {
		if err := c.openAllToAll(open, plugins, env...); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) openAllToAll(open int64, plugins []string, env ...string) error {
	var all []exchange
	var hosts []*host.Host
	for _, plugin := range plugins {
		r, err := c.openRig([2]string{}, plugin, env...)
		if err != nil {
			return err
		}
		defer r.close()
		hosts = append(hosts, r.a, r.b)
		x := exchange{name: filepath.Base(plugin)}
		if x.to, err = crowdOf(r, open); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		if x.back, err = crowdOf(&rig{a: r.b, b: r.a, na: r.nb, nb: r.na}, open); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		all = append(all, x)
	}
	moving := []int64{open}
	if open > 2 {
		moving = append(moving, 2)
	}
	for _, n := range moving {
		for _, size := range []int64{8, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10} {
			if err := c.exchangeRow(all, hosts, open, n, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// crowdOf connects n times.
func crowdOf(r *rig, n int64) (*crowd, error) {
	s, err := newStorm(r, n)
	if err != nil {
		return nil, err
	}
	_, _, err = s.connect(n)
	return s, err
}

func (c *config) exchangeRow(all []exchange, hosts []*host.Host, open, n, size int64) error {
	steps := max(20, min(1000, 20_000/n, 256<<20/(n*size)))
	p50, p99, cpu, noisy := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all)), make([]int, len(all))
	for round := range c.rounds {
		for i := range all {
			if round%2 == 1 {
				i = len(all) - 1 - i
			}
			var a, b *host.Reply
			disturbed, err := calmly(hosts, func() (err error) {
				a, b, err = all[i].run(n, size, steps)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s, %d of %d connections, %d bytes: %w", all[i].name, n, open, size, err)
			}
			if disturbed {
				noisy[i]++
			}
			p50[i], p99[i] = append(p50[i], a.Float("p50")/1e3), append(p99[i], a.Float("p99")/1e3)
			cpu[i] = append(cpu[i], (processCPU(a)+processCPU(b))/1e3/float64(steps))
		}
	}
	fmt.Printf("%6d %6d %8d", open, n, size)
	for i := range all {
		fmt.Printf("  %8.1f%1s %9.1f %9.1f", rounds.Median(p50[i]), rounds.Mark(noisy[i]), rounds.Median(p99[i]), rounds.Median(cpu[i]))
		if i > 0 {
			fmt.Printf(" (%5.2f)", rounds.Median(rounds.Ratios(p50[i], p50[0])))
		}
	}
	fmt.Println()
	return nil
}

// run exchanges messages on the first n connections.
func (x exchange) run(n, size, steps int64) (a, b *host.Reply, err error) {
	common := host.Args{"n", n, "size", size, "steps", steps, "warm", steps / 10, "limit", limit / 2}
	return x.to.r.both("conn.exchange", append(host.Args{"sends", x.to.sends, "recvs", x.back.recvs}, common...),
		"conn.exchange", append(host.Args{"sends", x.back.sends, "recvs", x.to.recvs}, common...))
}
