package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/metrics"
	"weft/internal/metrics/top"
	"weft/internal/owner"
)

func topCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "top [flags] FILE|DIR...",
		Short: "what connections do, as they do it",
		Long: `Shows what connections do, as they do it, from what processes count with
WEFT_PROFILE=metrics: for each process, device and peer messages and bytes per second,
the time of a message (p50, p99) in the last interval, how many are under way, for how
much of the time sends found no receive and for how long one has not, and which
processes are stopped or have ended.
On a terminal, keys sort: b bytes, m messages, l latency, w waits, n names; q quits.
Elsewhere each interval is lines. NO_COLOR keeps it without colours.
Exit status 0: all was read; 1: some files could not be; 2: none could, or usage.`,
		Example: `  weft top /tmp/traces
  weft top --sort waits --every 5s /tmp/traces
  weft top --once --json /tmp/traces | jq '.rows[] | select(.state != "runs")'`,
		Args: ofFiles,
	}
	w := &watch{said: map[string]bool{}}
	f := c.Flags()
	once := f.Bool("once", false, "show one interval, and end")
	f.BoolVar(&w.asJSON, "json", false, "write a JSON object an interval, each on a line")
	f.StringVar(&w.order, "sort", top.Orders[0], "sort by `what`: "+strings.Join(top.Orders, ", "))
	durationVar(f, &w.every, "every", 2*time.Second, "of an interval")
	oneOf(c, "sort", top.Orders...)
	c.RunE = func(c *cobra.Command, names []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		w.names, w.stdout, w.stderr = names, c.OutOrStdout(), c.ErrOrStderr()
		return w.watch(ctx, *once)
	}
	return c
}

// watch is "weft top" that is being carried out.
type watch struct {
	stdout, stderr io.Writer
	names          []string
	asJSON         bool
	order          string
	every          time.Duration
	screen         *screen // nil: each interval is lines
	said           map[string]bool
	unsaid         []string // until the screen is closed
	status         int
}

func (w *watch) watch(ctx context.Context, once bool) error {
	switch {
	case !slices.Contains(top.Orders, w.order):
		return fmt.Errorf("--sort %s: there are %s", w.order, strings.Join(top.Orders, ", "))
	case w.every < 100*time.Millisecond:
		return fmt.Errorf("--every %v: 100ms is the least", w.every)
	}
	if !once && !w.asJSON {
		w.screen = openScreen(w.stdout)
	}
	err := w.run(ctx, once)
	w.screen.close()
	for _, line := range w.unsaid {
		fmt.Fprintln(w.stderr, line)
	}
	if err != nil {
		return err
	}
	return ended(w.status)
}

// look reads the files. What cannot be read, or is not there yet, is said once.
func (w *watch) look() (*top.Look, error) {
	here, now := owner.Here("/proc"), time.Now()
	files, bad, err := metrics.Load(w.names)
	if len(bad) > 0 {
		w.status = 1
		if len(files) == 0 {
			w.status = 2
		}
	}
	for _, err := range append(bad, metrics.Missing(w.names)...) {
		if w.said[err.Error()] {
			continue
		}
		w.said[err.Error()] = true
		line := fmt.Sprintf("weft top: %v", err)
		if w.screen != nil {
			w.unsaid = append(w.unsaid, line)
			continue
		}
		fmt.Fprintln(w.stderr, line)
	}
	if err != nil {
		return nil, err
	}
	return top.Take(files, here, now), nil
}

// run shows intervals until ctx is done or a key says so. On a screen there is something at once, and again whenever a key
// or another size asks for it.
func (w *watch) run(ctx context.Context, once bool) error {
	before, err := w.look()
	if err != nil {
		return err
	}
	var keys chan byte
	var resized chan os.Signal
	var last *top.View
	if w.screen != nil {
		keys, resized = w.screen.keys, w.screen.resized
		last = top.Between(before, before)
		if err := w.show(last); err != nil {
			return err
		}
	}
	next := time.After(w.every)
	for {
		select {
		case <-ctx.Done():
			return nil
		case k := <-keys:
			if w.key(k) {
				return nil
			}
		case <-resized:
		case <-next:
			next = time.After(w.every)
			now, err := w.look()
			if err != nil {
				return err
			}
			last, before = top.Between(before, now), now
		}
		if err := w.show(last); err != nil || once {
			return err
		}
	}
}

// key reports whether it quits.
func (w *watch) key(k byte) bool {
	if order := map[byte]string{'b': "bytes", 'm': "messages", 'l': "p99", 'w': "waits", 'n': "name"}[k]; order != "" {
		w.order = order
	}
	return k == 'q' || k == 3 // ^C, which is no signal while keys are ours
}

// show writes a view; on a screen, over the one before.
func (w *watch) show(v *top.View) error {
	if w.asJSON {
		v.Sort(w.order)
		return json.NewEncoder(w.stdout).Encode(v)
	}
	s := top.Screen{Order: w.order, Color: onTerminal(w.stdout) && os.Getenv("NO_COLOR") == ""}
	if w.screen == nil {
		return v.Text(w.stdout, s)
	}
	width, height := w.screen.size()
	if height > 0 {
		s.Width, s.Rows = width, max(1, height-3) // a summary, the heads of columns, and how many more there are
	}
	var b strings.Builder
	if err := v.Text(&b, s); err != nil {
		return err
	}
	return w.screen.draw(b.String(), height)
}
