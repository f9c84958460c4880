package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"weft/internal/rounds"
)

// messageRow is one program that moves messages: a plugin, or the verbs calls alone.
type messageRow struct{ name, path string }

// messages measures what a message costs on simulated verbs, both ends on one
// thread: CPU time, and instructions of the plugin and of the simulation.
func messages(c *config) error {
	env, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	rows := []messageRow{{"verbs calls alone", "verbs"}}
	for _, p := range c.rdmaPlugins() {
		rows = append(rows, messageRow{filepath.Base(p), p})
	}
	fmt.Println("  CPU ns: the calling thread's, median; instructions: plugin's own + simulated verbs'; calls: plugin's own, isend0 finds no receive yet")
	for _, s := range []struct{ lanes, ahead int }{{1, 8}, {4, 8}, {8, 8}, {1, 1}} {
		if err := c.messageTable(rows, slices.Concat(lanesEnv(s.lanes), []string{"NCCL_SOCKET_IFNAME=" + c.iface}, env), s.lanes, s.ahead); err != nil {
			return err
		}
	}
	return nil
}

func (c *config) messageTable(rows []messageRow, env []string, lanes, ahead int) error {
	ns, idle := make([][]float64, len(rows)), make([][]float64, len(rows))
	last := make([]map[string][]float64, len(rows))
	for round := range c.rounds { // the rounds of all rows alternate
		for i, r := range rows {
			steps := 0
			if round == 0 {
				steps = 512
			}
			f, err := c.both(env, r.path, fmt.Sprintf("window=%d", ahead), fmt.Sprintf("steps=%d", steps))
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			ns[i], idle[i] = append(ns[i], f["ns"][0]), append(idle[i], f["idle.ns"][0])
			if round == 0 {
				last[i] = f
			}
		}
	}
	fmt.Printf("  %d lane(s), %d ahead\n", lanes, ahead)
	for i, r := range rows {
		f := last[i]
		fmt.Printf("    %-26s %6.0f ns (%4.2f)  idle test %5.1f ns", r.name, rounds.Median(ns[i]), rounds.Median(ns[i])/rounds.Median(ns[len(rows)-1]), rounds.Median(idle[i]))
		if len(f["insn.plugin"]) == 1 {
			fmt.Printf("  instructions %5.0f + %4.0f (idle test %3.0f + %2.0f)", f["insn.plugin"][0], f["insn.verbs"][0], f["idle.plugin"][0], f["idle.verbs"][0])
		}
		for _, call := range []struct{ show, key string }{{"irecv", "irecv"}, {"isend", "isend"}, {"isend0", "isend-null"}, {"test sent", "test-send"}, {"test received", "test-recv"}} {
			if v := f[call.key]; len(v) == 2 && r.path != "verbs" {
				fmt.Printf("  %s %.0f", call.show, v[0])
			}
		}
		fmt.Println()
	}
	return nil
}
