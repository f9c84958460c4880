package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"weft/internal/rounds"
)

// mode is a value of WEFT_PROFILE that is measured beside none.
type mode struct {
	name, profile string
	part          float64 // by which it may cost more than none; 0: nothing is asked
	events        string  // of NCCL's profiler that are asked for; "": all that weft asks for
}

// modes begin with what the others are measured beside. The second is the same once more: how far it seems to be from the
// first shows what this machine cannot tell.
var modes = []mode{
	{"off", "0", 0, ""},
	{"off again", "0", 0, ""},
	{"metrics", "metrics", 0.003, ""},
	{"stall", "stall", 0.003, ""},
	{"metrics,stall", "metrics,stall", 0.003, ""},
	{"trace", "trace", 0.01, ""},
}

// unasked are modes of which no part is asked.
func unasked(list []mode) []mode {
	list = slices.Clone(list)
	for i := range list {
		list[i].part = 0
	}
	return list
}

// beside is what modes cost, round by round.
type beside struct {
	modes     []mode
	cost      [][][]float64 // of a figure, of a mode, in each round
	disturbed []int         // rounds of a mode
}

// alternate measures figures of all modes in each round, in an order that is drawn anew, each time with processes of their own:
// where the memory of a process lies makes a difference that lasts as long as it does.
func (c *config) alternate(modes []mode, figures int, trial func(env []string) ([]float64, error)) (*beside, error) {
	b := &beside{modes: modes, cost: make([][][]float64, figures), disturbed: make([]int, len(modes))}
	for i := range b.cost {
		b.cost[i] = make([][]float64, len(modes))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // what trials have written is removed then, too
	defer stop()
	draw := rand.New(rand.NewPCG(14, 0))
	for range c.rounds {
		for _, m := range draw.Perm(len(modes)) {
			var costs []float64
			disturbed, err := rounds.Calmly(used, func() (err error) {
				costs, err = modes[m].try(trial)
				return err
			})
			if ctx.Err() != nil {
				return b, context.Cause(ctx)
			}
			if err == nil && len(costs) != figures {
				err = fmt.Errorf("%d of %d figures were measured", len(costs), figures)
			}
			if err != nil {
				return b, fmt.Errorf("WEFT_PROFILE=%s: %w", modes[m].profile, err)
			}
			if disturbed {
				b.disturbed[m]++
			}
			for i := range b.cost {
				b.cost[i][m] = append(b.cost[i][m], costs[i])
			}
		}
	}
	return b, nil
}

// try has a trial write its files where they are removed.
func (m mode) try(trial func(env []string) ([]float64, error)) ([]float64, error) {
	dir, err := os.MkdirTemp("", "weft-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return trial([]string{"WEFT_PROFILE=" + m.profile, "WEFT_PROFILE_DIR=" + dir, "WEFT_PROFILE_EVENTS=" + m.events})
}

// show prints a figure of all modes, its medians by format and scale, and what it is beside the first mode's.
func (b *beside) show(figure int, what, format string, scale float64) {
	fmt.Printf("  %s\n", what)
	for i, m := range b.modes {
		cost := b.cost[figure]
		fmt.Printf("    %-17s "+format+"%1s", m.name, rounds.Median(cost[i])*scale, rounds.Mark(b.disturbed[i]))
		if i > 0 {
			r := ratioOf(cost[i], cost[0])
			fmt.Printf("  %.4f", r)
			if m.part > 0 {
				fmt.Printf("  %s", r.judgeRatio(m.part))
			}
		}
		fmt.Println()
	}
}
