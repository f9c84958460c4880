package main

import (
	"fmt"
	"io"
	"time"

	"weft/internal/trace/model"
	"weft/internal/trace/stall"
)

const traceStallUsage = `usage: weft trace stall [flags] FILE|DIR...

Tells of a job that stands still, or stood still when it was killed, from what its
processes have recorded:
  - the cause, as far as it shows: the rank for which the others wait and which itself
    waits for nobody, with what is known of it (stopped, gone, behind the others in its
    collectives, its GPU does not take or give data), or the link on which messages do
    not come
  - every wait: who, for whom, for what (to post a receive, to send, to get what was
    sent), for how long
Of processes of this machine it also asks the kernel how they are. Files of other
machines can be copied into one folder, or the folder be shared.
With --ras, the RAS service of the job's NCCL (2.24 on) is asked as well, and it is said
whether it agrees.
Exit status 0: nobody waits; 1: somebody does, a file could not be read whole, or RAS names
somebody or has not answered; 2: no file could be read, or usage.

examples:
  weft trace stall traces/
  weft trace stall --least 30s traces/
  weft trace stall --ras=node7:28028 traces/
  weft trace stall --json traces/ | jq '.causes[].what'

flags:
`

func traceStall(args []string, stdout, stderr io.Writer) int {
	c := newFileCall("trace stall", stdout, stderr)
	asJSON := c.flags.Bool("json", false, "write JSON; times in it are nanoseconds")
	var least time.Duration
	durationVar(c.flags, &least, "least", 2*time.Second, "what takes less is no wait")
	asked := c.rasFlag()
	names, status, ok := c.parse(args, traceStallUsage)
	if !ok {
		return status
	}
	if least < 0 {
		return c.refuse(fmt.Errorf("--least %v is negative", least))
	}
	look := stall.Here("/proc") // its time is before that of the files: what they tell is from then on
	files, status := c.load(names)
	if files == nil {
		return status
	}
	t := model.New(files)
	r := stall.New(t, look, least)
	r.RAS = asked.hold(t, r.Files())
	if err := c.print(r, *asJSON); err != nil {
		return c.refuse(err)
	}
	if len(r.Waits) > 0 || r.RAS.Wrong() {
		return 1
	}
	return status
}
