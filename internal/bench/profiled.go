package main

import (
	"fmt"
	"runtime"
	"slices"

	"weft/internal/rounds"
)

// heavy are messages of which a few are measured at a time.
type heavy struct {
	name                string
	bytes, count, ahead int64
}

var heavies = []heavy{{"16 MiB", 16 << 20, 32, 8}, {"64 MiB", 64 << 20, 8, 2}}

func (h heavy) gigabytes() float64 { return float64(h.bytes) / 1e9 }

// tcpOnly keeps what is measured on an interface, whatever cards there are.
func (c *config) tcpOnly(env []string) []string {
	return slices.Concat([]string{"NCCL_SOCKET_IFNAME=" + c.iface, "NCCL_IB_DISABLE=1"}, env)
}

// modesCPU measures what modes take of a message, both ends on one thread: nothing waits there for another core, and so nothing
// polls in vain. Instructions are counted one by one, and so they are the same on any machine.
func modesCPU(c *config) error {
	sim, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	verbs := func(env []string) []string {
		return slices.Concat(lanesEnv(1), []string{"NCCL_SOCKET_IFNAME=" + c.iface}, sim, env)
	}
	small, err := c.alternate(unasked(modes), 1, func(env []string) ([]float64, error) {
		f, err := c.both(verbs(env), c.library(), "steps=0")
		return f["ns"], err
	})
	if err != nil {
		return err
	}
	small.show(0, fmt.Sprintf("8 bytes on simulated verbs, both ends on one thread: CPU ns per message, %d rounds", c.rounds), "%7.1f", 1)
	if err := c.instructions(verbs, 8, 8, 64); err != nil {
		return err
	}
	h := heavies[0]
	size := fmt.Sprintf("size=%d", h.bytes)
	large, err := c.alternate(modes, 1, func(env []string) ([]float64, error) {
		f, err := c.both(c.tcpOnly(env), c.library(), size, "window=2", fmt.Sprintf("count=%d", h.count), "warm=2", "steps=0")
		return f["process.ns"], err
	})
	if err != nil {
		return err
	}
	large.show(0, fmt.Sprintf("%s over TCP, both ends on one thread: CPU s per GB of the process, %d rounds of %d messages", h.name, c.rounds, h.count), "%7.4f", 1e-9/h.gigabytes())
	if err := c.instructions(c.tcpOnly, h.bytes, 2, 4); err != nil {
		return err
	}
	whole := rounds.Median(large.cost[0][0])
	fmt.Printf("  what a mode adds to the CPU of an 8-byte message, beside the CPU of one of %s\n", h.name)
	for i, m := range modes[1:] {
		ns := more(small.cost[0][i+1], small.cost[0][0])
		part := ns.in(1 / whole)
		fmt.Printf("    %-17s %.0f ns: %.4f %%", m.name, ns, part.in(100))
		if m.part > 0 {
			fmt.Printf("  %s", part.judge(m.part, fmt.Sprintf("%.1f %%", 100*m.part)))
		}
		fmt.Println()
	}
	return nil
}

// instructions counts those of the plugin for a message, in each mode.
func (c *config) instructions(env func([]string) []string, bytes int64, ahead, steps int) error {
	if runtime.GOARCH != "amd64" {
		fmt.Println("  instructions are counted by the trap flag of x86-64 alone")
		return nil
	}
	fmt.Printf("  instructions of the plugin per message of %d bytes, both ends (in thousands per GB); over TCP they follow what the socket takes at a time\n", bytes)
	first := 0.0
	for _, m := range modes {
		if m.name == "off again" {
			continue
		}
		_, err := m.try(func(mode []string) ([]float64, error) {
			f, err := c.both(env(mode), c.library(), fmt.Sprint("size=", bytes), fmt.Sprint("window=", ahead), fmt.Sprint("count=", steps), "warm=4", fmt.Sprint("steps=", steps))
			if err != nil || len(f["insn.plugin"]) != 1 {
				return nil, fmt.Errorf("%s says %v: %w", c.bothEnds, f, err)
			}
			n := f["insn.plugin"][0]
			if first == 0 {
				first = n
			}
			fmt.Printf("    %-17s %8.0f (%.0f)  %+.0f\n", m.name, n, n/float64(bytes)*1e6, n-first)
			return nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// modesBandwidth measures what modes take of a connection between two processes, a core each.
func modesBandwidth(c *config) error {
	var uncounted error
	b, err := c.alternate(modes, 3*len(heavies), func(env []string) (all []float64, err error) {
		r, err := c.newRig(c.library(), c.tcpOnly(env)...)
		if err != nil {
			return nil, err
		}
		defer r.close()
		memory := int64(0)
		for _, h := range heavies {
			memory = max(memory, h.bytes*h.ahead)
		}
		own, _, err := r.flows("weft", memory)
		if err != nil {
			return nil, err
		}
		for _, h := range heavies {
			if _, _, err := own.run(h.bytes, h.ahead, h.ahead); err != nil { // warms up
				return nil, err
			}
			n, err := countInstructions(r.a.PID, r.b.PID)
			if err != nil {
				uncounted = err
			}
			us, cpu, err := own.run(h.bytes, h.ahead, h.count)
			if err != nil {
				return nil, err
			}
			gigabytes := h.gigabytes() * float64(h.count)
			all = append(all, us/1e6/gigabytes, cpu/1e6/gigabytes, n.stop()/gigabytes)
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	for i, h := range heavies {
		title := fmt.Sprintf("%s over TCP, two processes, %d rounds of %d messages", h.name, c.rounds, h.count)
		b.show(3*i, title+": seconds per GB", "%7.4f", 1)
		b.show(3*i+1, title+": CPU s per GB of both, who poll while they wait", "%7.4f", 1)
		if uncounted == nil {
			b.show(3*i+2, title+": million instructions per GB of both", "%8.1f", 1e-6)
		}
	}
	if uncounted != nil {
		fmt.Printf("  instructions are not counted here: %v\n", uncounted)
	}
	return nil
}
