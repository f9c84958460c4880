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

	"golang.org/x/term"

	"weft/internal/metrics"
	"weft/internal/metrics/top"
	"weft/internal/owner"
)

const topUsage = `usage: weft top [flags] FILE|DIR...

Shows what connections do, as they do it, from what processes count with
WEFT_PROFILE=metrics: for each process, device and peer messages and bytes per second,
the time of a message (p50, p99) in the last interval, how many are under way, for how
much of the time sends found no receive and for how long one has not, and which
processes are stopped or have ended.
On a terminal, keys sort: b bytes, m messages, l latency, w waits, n names; q quits.
Elsewhere each interval is lines. NO_COLOR keeps it without colours.
Exit status 0: all was read; 1: some files could not be; 2: none could, or usage.

examples:
  weft top /tmp/traces
  weft top --sort waits --every 5s /tmp/traces
  weft top --once --json /tmp/traces | jq '.rows[] | select(.state != "runs")'

flags:
`

// runTop is "weft top".
func runTop(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return topTo(ctx, args, os.Stdout, os.Stderr)
}

// watch is "weft top" that is being carried out.
type watch struct {
	*fileCall
	names  []string
	asJSON bool
	order  string
	every  time.Duration
	said   map[string]bool
	status int
}

func topTo(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	w := &watch{fileCall: newFileCall("top", stdout, stderr), said: map[string]bool{}}
	once := w.flags.Bool("once", false, "show one interval, and end")
	w.flags.BoolVar(&w.asJSON, "json", false, "write a JSON object an interval, each on a line")
	w.flags.StringVar(&w.order, "sort", top.Orders[0], "sort by `what`: "+strings.Join(top.Orders, ", "))
	durationVar(w.flags, &w.every, "every", 2*time.Second, "of an interval")
	names, status, ok := w.parse(args, topUsage)
	if !ok {
		return status
	}
	w.names = names
	switch {
	case !slices.Contains(top.Orders, w.order):
		return w.refuse(fmt.Errorf("--sort %s: there are %s", w.order, strings.Join(top.Orders, ", ")))
	case w.every < 100*time.Millisecond:
		return w.refuse(fmt.Errorf("--every %v: 100ms is the least", w.every))
	}
	keys, end := w.keyboard(*once)
	defer end()
	if err := w.run(ctx, *once, keys); err != nil {
		end()
		return w.refuse(err)
	}
	return w.status
}

// keyboard gives keys of a terminal, which it takes over until end; nil: there is none.
func (w *watch) keyboard(once bool) (keys chan byte, end func()) {
	if once || w.asJSON || !w.terminal() || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, func() {}
	}
	was, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return nil, func() {}
	}
	fmt.Fprint(w.stdout, "\x1b[?1049h\x1b[?25l") // a screen of its own, without a cursor
	keys = make(chan byte)
	go func() {
		for b := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(b); n == 0 || err != nil {
				return
			}
			keys <- b[0]
		}
	}()
	return keys, func() {
		if was != nil {
			fmt.Fprint(w.stdout, "\x1b[?25h\x1b[?1049l")
			_ = term.Restore(int(os.Stdin.Fd()), was)
			was = nil
		}
	}
}

// terminal reports whether what is written is seen on one.
func (w *watch) terminal() bool {
	f, is := w.stdout.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// look reads the files. What cannot be read is said once.
func (w *watch) look() (*top.Look, error) {
	here, now := owner.Here("/proc"), time.Now()
	files, bad, err := metrics.Load(w.names)
	for _, err := range bad {
		w.status = 1
		if !w.said[err.Error()] && !w.terminal() {
			w.said[err.Error()] = true
			fmt.Fprintf(w.stderr, "weft top: %v\n", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return top.Take(files, here, now), nil
}

// run shows intervals until ctx is done or a key says so.
func (w *watch) run(ctx context.Context, once bool, keys chan byte) error {
	before, err := w.look()
	if err != nil {
		return err
	}
	var last *top.View
	next := time.After(w.every)
	for {
		select {
		case <-ctx.Done():
			return nil
		case k := <-keys:
			if w.key(k) {
				return nil
			}
			if last != nil {
				if err := w.show(last, true); err != nil {
					return err
				}
			}
		case <-next:
			next = time.After(w.every)
			now, err := w.look()
			if err != nil {
				return err
			}
			last = top.Between(before, now)
			before = now
			if err := w.show(last, keys != nil); err != nil || once {
				return err
			}
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

// show writes a view; in place, over the one before.
func (w *watch) show(v *top.View, inPlace bool) error {
	if w.asJSON {
		v.Sort(w.order)
		return json.NewEncoder(w.stdout).Encode(v)
	}
	s := top.Screen{Order: w.order, Color: w.terminal() && os.Getenv("NO_COLOR") == ""}
	if !inPlace {
		return v.Text(w.stdout, s)
	}
	if width, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil && height > 0 {
		s.Width, s.Rows = width, max(1, height-4)
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	if err := v.Text(&b, s); err != nil {
		return err
	}
	_, err := io.WriteString(w.stdout, strings.ReplaceAll(b.String(), "\n", "\x1b[K\r\n")+"\x1b[J")
	return err
}
