package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"weft/internal/trace/model"
	"weft/internal/trace/page"
	"weft/internal/trace/summary"
)

const traceReportUsage = `usage: weft trace report [flags] FILE|DIR...

Tells from what the processes of a job have recorded:
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
or RAS has not answered; 2: no file could be read, or usage.

examples:
  weft trace report traces/
  weft trace report --last 10s traces/
  weft trace report --ras traces/
  weft trace report --html job.html traces/
  weft trace report --json traces/ | jq '.findings[].what'

flags:
`

func traceReport(args []string, stdout, stderr io.Writer) int {
	c := newFileCall("trace report", stdout, stderr)
	asJSON := c.flags.Bool("json", false, "write JSON; times in it are nanoseconds")
	html := c.flags.String("html", "", "write the report to this `file`, which ends in .html, as a page with pictures too")
	var last time.Duration
	durationVar(c.flags, &last, "last", 0, "of what is recorded only the last so long (default: all)")
	asked := c.rasFlag()
	names, status, ok := c.parse(args, traceReportUsage)
	if !ok {
		return status
	}
	if *html != "" && filepath.Ext(*html) != ".html" {
		return c.refuse(fmt.Errorf("--html %s: end it in .html", *html))
	}
	if last < 0 {
		return c.refuse(fmt.Errorf("--last %v is negative", last))
	}
	files, status := c.load(names)
	if files == nil {
		return status
	}
	t := model.New(files)
	if last > 0 {
		t.KeepLast(last)
	}
	r := summary.New(t)
	r.RAS = asked.hold(t, r.Files())
	if *html != "" {
		if err := writeWhole(*html, func(w io.Writer) error { return page.Write(w, r) }); err != nil {
			return c.refuse(err)
		}
	}
	if err := c.print(r, *asJSON); err != nil {
		return c.refuse(err)
	}
	if len(r.Findings) > 0 || r.RAS.Wrong() {
		return 1
	}
	return status
}
