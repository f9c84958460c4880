package main

import (
	"encoding/json"
	"fmt"
	"io"

	"weft/internal/trace/contents"
)

const traceShowUsage = `usage: weft trace show [flags] FILE|DIR...

Says what is in each file: the process, what was lost of its records, its threads,
communicators, connections, and how many events there are of each type. A file that
a process is still writing can be read.
Exit status 0: every file was read; 1: some could not be, or not
whole; 2: none could, or usage.

examples:
  weft trace show weft-node1-4242-5e1f09aa.rec
  weft trace show --json traces/

flags:
`

func traceShow(args []string, stdout, stderr io.Writer) int {
	c := newFileCall("trace show", stdout, stderr)
	asJSON := c.flags.Bool("json", false, "write a JSON object a file, each on a line")
	names, status, ok := c.parse(args, traceShowUsage)
	if !ok {
		return status
	}
	files, status := c.load(names)
	for i, f := range files {
		in := contents.New(f)
		files[i] = nil // its records are no longer needed
		var err error
		if *asJSON {
			err = json.NewEncoder(stdout).Encode(in)
		} else {
			if i > 0 {
				fmt.Fprintln(stdout)
			}
			err = in.Text(stdout)
		}
		if err != nil {
			return c.refuse(err)
		}
	}
	return status
}
