package main

import (
	"encoding/json"
	"io"

	"weft/internal/trace/model"
	"weft/internal/trace/summary"
)

const traceReportUsage = `usage: weft trace report [flags] FILE|DIR...

Tells from what the processes of a job have recorded:
  - which rank comes late to its collectives, and which link is slow, with the
    evidence; nobody is accused of what the machines' clocks cannot tell
  - of each communicator: what its operations took (p50, p99), with which algorithm and
    protocol, and the bus bandwidth by the formulas of nccl-tests; what the steps of
    each rank's proxy waited for; how far apart the ranks came
  - of each link: messages, bytes, time from send to receive, and how long receivers
    waited for senders and senders for receivers
  - what was lost, and by how much the clocks may be wrong
Exit status 0: nothing stands out; 1: something does, or a file could not be read;
2: no file could be read, or usage.

examples:
  weft trace report traces/
  weft trace report --json traces/ | jq '.findings[].what'

flags:
`

func traceReport(args []string, stdout, stderr io.Writer) int {
	c := newTraceCall("report", stdout, stderr)
	asJSON := c.flags.Bool("json", false, "write JSON; times in it are nanoseconds")
	names, status, ok := c.parse(args, traceReportUsage)
	if !ok {
		return status
	}
	files, status := c.load(names)
	if files == nil {
		return status
	}
	r := summary.New(model.New(files))
	write := r.Text
	if *asJSON {
		write = func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}
	}
	if err := write(stdout); err != nil {
		return c.refuse(err)
	}
	if len(r.Findings) > 0 {
		return 1
	}
	return status
}
