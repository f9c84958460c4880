package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/trace"
	"weft/internal/trace/chrome"
	"weft/internal/trace/clock"
	"weft/internal/trace/draw"
	"weft/internal/trace/model"
	"weft/internal/trace/perfetto"
)

func traceMerge() *cobra.Command {
	c := &cobra.Command{
		Use:   "merge FILE|DIR... -o OUT",
		Short: "one trace of all, for ui.perfetto.dev or another viewer",
		Long: `Makes one trace of what the processes of a job have recorded: a process for each,
named by its rank; tracks for communicators, channels, threads, QPs or
sockets, and connections; an arrow from each send to its receive. A collective ends
with the last of its kernels and network transfers; where neither was recorded it is
drawn as launched only. The machines' clocks are aligned by messages both ways, or
by their realtime clocks where there are none; which, and how far off they may be, is
said at the end.

OUT.pftrace is for ui.perfetto.dev and its trace_processor; OUT.json is Chrome's
format, for chrome://tracing and others. Nobody else may read the file.
Exit status 0: all is in it; 1: some files could not be read, or not whole; 2:
none could, or usage.`,
		Example: `  weft trace merge traces/ -o job.pftrace
  weft trace merge node1/*.rec node2/*.rec -o job.json`,
		Args: ofFiles,
	}
	out := c.Flags().StringP("output", "o", "", "write the trace to this `file`, which ends in .pftrace or .json")
	c.RunE = func(c *cobra.Command, names []string) error {
		write := traceWriters[filepath.Ext(*out)]
		if *out == "" {
			return errors.New("-o is missing: it names the file to write")
		}
		if write == nil {
			return fmt.Errorf("-o %s: end it in .pftrace (Perfetto) or .json (Chrome)", *out)
		}
		files, with, err := load(c, names)
		if err != nil {
			return err
		}
		t := model.New(files)
		p := draw.New(t)
		if err := writeWhole(*out, func(w io.Writer) error { return write(w, p) }); err != nil {
			return err
		}
		tellMerged(c.OutOrStdout(), t, p, *out)
		return ended(with)
	}
	return c
}

// writers of traces, by what the file's name ends with.
var traceWriters = map[string]func(io.Writer, *draw.Picture) error{".pftrace": perfetto.Write, ".json": chrome.Write}

// tellMerged says what is in the trace that has been written, and what is not.
func tellMerged(w io.Writer, t *model.Trace, p *draw.Picture, name string) {
	events, messages := 0, 0
	for _, pr := range t.Processes {
		events += len(pr.Events)
		for _, e := range pr.Ends {
			messages += len(e.Messages)
		}
		if pr.Loss != (trace.Loss{}) {
			fmt.Fprintf(w, "%s: lost %v\n", pr.Name(), pr.Loss)
		}
	}
	for _, m := range t.Machines {
		if o := m.Clock; o.Basis == clock.Messages {
			fmt.Fprintf(w, "clock of %s: aligned by messages both ways, wrong by at most %v\n", m.Host, time.Duration(o.Bound))
		}
	}
	for _, n := range append(t.Notes, p.Notes...) {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	fmt.Fprintf(w, "%s: %d process%s, %d events, %d messages, %d arrows\n", name, len(t.Processes), pluralEs(len(t.Processes)), events, messages, p.Arrows)
}

func pluralEs(n int) string {
	if n == 1 {
		return ""
	}
	return "es"
}
