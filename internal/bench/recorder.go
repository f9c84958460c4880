package main

import (
	"fmt"
	"strings"

	"weft/internal/rounds"
)

const (
	eventSamples = 320_000 // of each kind, by all threads: 320 of them are above the p99.9
	eventRate    = 100_000 // a second
	eventMillis  = 300     // of one measurement of that rate
	eventShare   = 0.01    // of a core, that it may take
	eventMost    = 100     // ns of CPU of a call, at most
)

// eventKinds are what is timed, by the names of the program, with what they are.
var eventKinds = []struct{ name, about string }{
	{"clock", "nothing: two readings of the clock"},
	{"start", "startEvent, a step of the proxy"},
	{"state", "recordEventState of it"},
	{"stop", "stopEvent of it"},
	{"coll", "startEvent, a collective: two records, four texts"},
}

// events measures what a call of the profiler takes: sample by sample, beside samples with no call in them, and in a loop,
// beside one that reads the clock.
func events(c *config) error {
	fmt.Printf("  ns, medians of %d rounds of %d samples; above: beyond what a sample without a call has in the same round (bounds of the median, 95 %%)\n", c.rounds, eventSamples)
	for _, threads := range []int{1, 8} {
		last := 2 * len(eventKinds)
		b, err := c.alternate([]mode{{name: "trace", profile: "trace"}}, last+2, func(env []string) (all []float64, err error) {
			f, err := figuresOf(env, c.events, c.library(), fmt.Sprintf("threads=%d", threads), fmt.Sprintf("count=%d", eventSamples/threads))
			for _, k := range eventKinds {
				all = append(all, f[k.name]...)
			}
			return append(append(all, f["loop"]...), f["loop.clock"]...), err
		})
		if err != nil {
			return err
		}
		fmt.Printf("  %d thread(s)%s\n", threads, rounds.Mark(b.disturbed[0]))
		for i, k := range eventKinds {
			var cells []string
			for q, quantile := range []string{"p50", "p99.9"} {
				took := b.cost[2*i+q][0]
				cells = append(cells, fmt.Sprintf("%s %4.0f", quantile, rounds.Median(took)))
				if i > 0 {
					cells = append(cells, fmt.Sprintf("above %-18s", fmt.Sprintf("%.0f", more(took, b.cost[q][0]))))
				}
			}
			fmt.Printf("    %-50s %s\n", k.about, strings.TrimRight(strings.Join(cells, "  "), " "))
		}
		loop, bare := b.cost[last][0], b.cost[last+1][0]
		fmt.Printf("    %-50s %.1f ns of CPU per call, %.2f of one clock read (%.1f); %s\n", "start and stop in a loop", estimateOf(loop), ratioOf(loop, bare),
			rounds.Median(bare), estimateOf(loop).judge(eventMost, fmt.Sprint(eventMost, " ns")))
	}
	return nil
}

// eventsRate measures what a sustained rate of events takes of a core, beside the same loop without them.
func eventsRate(c *config) error {
	rows := []mode{{name: "not recording", profile: "0"}, {name: "not again", profile: "0"}, {name: "recording", profile: "trace", part: eventShare}}
	b, err := c.alternate(rows, 2, func(env []string) ([]float64, error) {
		f, err := figuresOf(env, c.events, c.library(), fmt.Sprintf("rate=%d", eventRate), fmt.Sprintf("ms=%d", eventMillis))
		return append(f["thread"], f["process"]...), err
	})
	if err != nil {
		return err
	}
	fmt.Printf("  %% of one core, medians of %d rounds of %d ms, by getrusage; more: of the process, than without, in the same round (bounds of the median, 95 %%)\n", c.rounds, eventMillis)
	for i, m := range rows {
		fmt.Printf("    %-17s thread %6.3f  process %6.3f%1s", m.name, 100*rounds.Median(b.cost[0][i]), 100*rounds.Median(b.cost[1][i]), rounds.Mark(b.disturbed[i]))
		if i > 0 {
			e := more(b.cost[1][i], b.cost[1][0])
			fmt.Printf("  more: %.3f", e.in(100))
			if m.part > 0 {
				fmt.Printf("  %s", e.judge(m.part, fmt.Sprintf("%.0f %%", 100*m.part)))
			}
		}
		fmt.Println()
	}
	return nil
}
