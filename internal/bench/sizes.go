package main

import (
	"fmt"
	"path/filepath"

	"weft/internal/host"
	"weft/internal/rounds"
)

const (
	sizesMemory = 256 << 20 // of each side: requests that are under way at the same time have buffers of their own
	sizesBytes  = 256 << 20 // moved in one measurement,
	sizesMost   = 20_000    // by at most so many messages
)

var (
	sizes   = []int64{8, 64, 512, 4 << 10, 32 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	windows = []int64{1, 4, 8, 16}
)

// everySize compares GB/s and CPU of one connection from 8 bytes to 64 MiB, with 1 to 16 requests under way.
func everySize(c *config) error {
	return c.everySize(c.plugins(), true)
}

// rdmaSizes is the same over simulated verbs.
func rdmaSizes(c *config) error {
	env, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	return c.everySize(c.rdmaPlugins(), false, env...)
}

// flow is what is measured: a plugin's connection, or what such a connection cannot do without.
type flow struct {
	name string
	run  func(size, window, count int64) (us, cpu float64, err error) // cpu: us of both processes
}

func (c *config) everySize(plugins []string, plain bool, env ...string) error {
	var flows []flow
	var hosts []*host.Host
	for _, plugin := range plugins {
		r, err := c.openRig([2]string{}, plugin, env...)
		if err != nil {
			return err
		}
		defer r.close()
		hosts = append(hosts, r.a, r.b)
		own, floor, err := r.flows(filepath.Base(plugin), sizesMemory)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		if flows = append(flows, own); plain && len(flows) == 1 {
			flows = append(flows, floor...)
		}
	}
	fmt.Printf("%10s %6s", "bytes", "window")
	for _, f := range flows {
		fmt.Printf("  %33s", f.name)
	}
	fmt.Println("   (GB/s, CPU s per GB, in brackets: the library's rate beside this one's, the rates of the same round; ~: disturbed)")
	for _, size := range sizes {
		for _, window := range windows {
			if window*size > sizesMemory {
				break
			}
			if err := c.cell(size, window, flows, hosts); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell is one row. The rounds of all flows alternate, and each round is compared for itself.
func (c *config) cell(size, window int64, flows []flow, hosts []*host.Host) error {
	count := min(max(sizesBytes/size, 8), sizesMost)
	rate, cpu, noisy := make([][]float64, len(flows)), make([][]float64, len(flows)), make([]int, len(flows))
	for round := range c.rounds {
		for i := range flows {
			if round%2 == 1 {
				i = len(flows) - 1 - i
			}
			var us, used float64
			disturbed, err := calmly(hosts, func() (err error) {
				us, used, err = flows[i].run(size, window, count)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s, %d bytes, window %d: %w", flows[i].name, size, window, err)
			}
			if disturbed {
				noisy[i]++
			}
			gigabytes := float64(size*count) / 1e9
			rate[i], cpu[i] = append(rate[i], gigabytes/us*1e6), append(cpu[i], used/1e6/gigabytes)
		}
	}
	fmt.Printf("%10d %6d", size, window)
	for i := range flows {
		fmt.Printf("  %8.3f%1s %9.3f", rounds.Median(rate[i]), rounds.Mark(noisy[i]), rounds.Median(cpu[i]))
		if i > 0 {
			fmt.Printf(" (%5.2f)", rounds.Median(rounds.Ratios(rate[0], rate[i])))
		}
	}
	fmt.Println()
	return nil
}

// flows are the plugin's connection and, through the same memory of each process, its floor: a plain loop between the same two
// processes, and a copy within one of them.
func (r *rig) flows(name string, memory int64) (own flow, floor []flow, err error) {
	fdA, fdB, err := r.plain()
	if err != nil {
		return own, nil, err
	}
	send, recv, err := connect(r.na, r.nb, r.a, r.b)
	if err != nil {
		return own, nil, err
	}
	bufA, mhA, err := buffer(r.a, r.na, send, memory)
	if err != nil {
		return own, nil, err
	}
	bufB, mhB, err := buffer(r.b, r.nb, recv, memory)
	if err != nil {
		return own, nil, err
	}
	run := func(loop string, a, b host.Args) func(size, window, count int64) (us, cpu float64, err error) {
		return func(size, window, count int64) (us, cpu float64, err error) {
			both := host.Args{"size", size, "span", window * max(size, 64), "window", window, "count", count, "yield", 1, "limit", limit / 2}
			ra, rb, err := r.both(loop, append(append(host.Args{"role", "send", "buf", bufA}, a...), both...),
				loop, append(append(host.Args{"role", "recv", "buf", bufB}, b...), both...))
			return max(ra.Float("us"), rb.Float("us")), (processCPU(ra) + processCPU(rb)) / 1e3, err
		}
	}
	own = flow{name, run("bw", host.Args{"comm", send, "mh", mhA}, host.Args{"comm", recv, "mh", mhB})}
	loop := flow{"plain C loop", run("plain.bw", host.Args{"fd", fdA}, host.Args{"fd", fdB})}
	once := flow{"one memcpy", func(size, window, count int64) (us, cpu float64, err error) {
		reply, err := r.a.Call("progress", "plain.copy", host.Args{"buf", bufA, "size", size, "span", min(2*window*max(size, 64), memory), "count", count, "limit", limit / 2})
		if err != nil {
			return 0, 0, err
		}
		return reply.Float("us"), processCPU(reply) / 1e3, nil
	}}
	return own, []flow{loop, once}, nil
}

// processCPU is what a loop took of its process, in ns.
func processCPU(r *host.Reply) float64 { return r.Float("utime") + r.Float("stime") }
