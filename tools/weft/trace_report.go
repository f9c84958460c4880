package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/trace/model"
	"weft/internal/trace/page"
	"weft/internal/trace/summary"
)

func traceReport() *cobra.Command {
	c := &cobra.Command{
		Use:   "report [flags] FILE|DIR...",
		Short: "what collectives and links took, which ranks are late, which links slow",
		Long: `Tells from what the processes of a job have recorded:
  - which rank comes late to its collectives, which link is slow, and which process
    keeps others waiting, with the evidence; nobody is accused of what the machines'
    clocks cannot tell
  - of each communicator: what its operations took (p50, p99), with which algorithm and
    protocol, and the bus bandwidth by the formulas of nccl-tests; what the steps of
    each rank's proxy waited for; how far apart the ranks came
  - of each link: messages, bytes, time from send to receive, and how long receivers
    waited for senders and senders for receivers
  - what was lost, and by how much the clocks may be wrong
With --last only of what has happened since so long ago: of a job that runs, what is
slow now.
With --html also as a page with pictures: links between ranks, how late each rank is,
the slowest collectives. It is one file, which needs no network and no scripts, and
which nobody else may read.
With --ras also what the RAS service of the job's NCCL (2.24 on) says while it runs: who
is dead, missing, behind in operations, or has failed.
Exit status 0: nothing stands out; 1: something does, a file could not be read whole,
or RAS has not answered; 2: no file could be read, or usage.`,
		Example: `  weft trace report traces/
  weft trace report --last 10s traces/
  weft trace report --ras traces/
  weft trace report --html job.html traces/
  weft trace report --json traces/ | jq '.findings[].what'`,
		Args: ofFiles,
	}
	f := c.Flags()
	asJSON := f.Bool("json", false, "write JSON; times in it are nanoseconds")
	html := f.String("html", "", "write the report to this `file`, which ends in .html, as a page with pictures too")
	var last time.Duration
	durationVar(f, &last, "last", 0, "of what is recorded only the last so long (default: all)")
	asked := rasOf(f)
	c.RunE = func(c *cobra.Command, names []string) error {
		if *html != "" && filepath.Ext(*html) != ".html" {
			return fmt.Errorf("--html %s: end it in .html", *html)
		}
		if last < 0 {
			return fmt.Errorf("--last %v is negative", last)
		}
		files, with, err := load(c, names)
		if err != nil {
			return err
		}
		t := model.New(files)
		if last > 0 {
			t.KeepLast(last)
		}
		r := summary.New(t)
		r.RAS = asked.hold(t, r.Files())
		if *html != "" {
			if err := writeWhole(*html, func(w io.Writer) error { return page.Write(w, r) }); err != nil {
				return err
			}
		}
		if err := printReport(c.OutOrStdout(), r, *asJSON); err != nil {
			return err
		}
		if len(r.Findings) > 0 || r.RAS.Wrong() {
			with = 1
		}
		return ended(with)
	}
	return c
}
