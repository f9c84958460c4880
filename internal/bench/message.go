package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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

// both runs the loop of both ends once and returns its figures by name.
func (c *config) both(env []string, plugin string, args ...string) (map[string][]float64, error) {
	cmd := exec.Command(c.bothEnds, append([]string{plugin}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	f := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, w := range words[1:] {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			f[words[0]] = append(f[words[0]], v)
		}
	}
	if len(f["ns"]) != 1 || len(f["idle.ns"]) != 1 {
		return nil, fmt.Errorf("%s says %q", c.bothEnds, out)
	}
	return f, nil
}
