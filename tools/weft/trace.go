package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"weft/internal/trace"
)

const traceUsage = `usage: weft trace COMMAND [flags] FILE|DIR...

Reads what processes have recorded with WEFT_PROFILE=trace: the files
weft-HOST-PID-ID.rec of WEFT_PROFILE_DIR, whole, of a process that was killed, or
of one that is still running. A folder stands for all such files in it.

  show       what is in each file
  merge      one trace of all, for ui.perfetto.dev or another viewer
  report     what collectives and links took, which ranks are late, which links slow
  stall      who waits for whom, in a job that stands still
  inspector  what NVIDIA's inspector would have written

weft trace COMMAND -h explains a command.

examples:
  weft trace show weft-node1-4242-5e1f09aa.rec
  weft trace merge traces/ -o job.pftrace
  weft trace report traces/
  weft trace stall traces/
`

var traceCommands = []struct {
	name string
	run  func(args []string, stdout, stderr io.Writer) int
}{
	{"show", traceShow},
	{"merge", traceMerge},
	{"report", traceReport},
	{"stall", traceStall},
	{"inspector", traceInspector},
}

// runTrace is "weft trace".
func runTrace(args []string) int { return traceTo(args, os.Stdout, os.Stderr) }

func traceTo(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, traceUsage)
		return 2
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		fmt.Fprint(stdout, traceUsage)
		return 0
	}
	for _, c := range traceCommands {
		if c.name == args[0] {
			return c.run(args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "weft trace: there is no command %q (weft trace -h lists them)\n", args[0])
	return 2
}

// load returns nil where no file can be read. The status is 1 where some cannot, or not whole.
func (c *fileCall) load(names []string) (files []*trace.File, status int) {
	files, bad, err := trace.Load(names)
	if err != nil {
		return nil, c.refuse(err)
	}
	for _, err := range bad {
		fmt.Fprintf(c.stderr, "weft %s: %v\n", c.name, err)
		status = 1
	}
	if len(files) == 0 {
		return nil, 2
	}
	for _, f := range files {
		if len(f.Notes) > 0 {
			status = 1
		}
	}
	return files, status
}
