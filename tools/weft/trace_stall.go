package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/trace/model"
	"weft/internal/trace/stall"
)

func traceStall() *cobra.Command {
	c := &cobra.Command{
		Use:   "stall [flags] FILE|DIR...",
		Short: "who waits for whom, in a job that stands still",
		Long: `Tells of a job that stands still, or stood still when it was killed, from what its
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
somebody or has not answered; 2: no file could be read, or usage.`,
		Example: `  weft trace stall traces/
  weft trace stall --least 30s traces/
  weft trace stall --ras=node7:28028 traces/
  weft trace stall --json traces/ | jq '.causes[].what'`,
		Args: ofFiles,
	}
	f := c.Flags()
	asJSON := f.Bool("json", false, "write JSON; times in it are nanoseconds")
	var least time.Duration
	durationVar(f, &least, "least", 2*time.Second, "what takes less is no wait")
	asked := rasOf(f)
	c.RunE = func(c *cobra.Command, names []string) error {
		if least < 0 {
			return fmt.Errorf("--least %v is negative", least)
		}
		look := stall.Here("/proc") // its time is before that of the files: what they tell is from then on
		files, with, err := load(c, names)
		if err != nil {
			return err
		}
		t := model.New(files)
		r := stall.New(t, look, least)
		r.RAS = asked.hold(t, r.Files())
		if err := printReport(c.OutOrStdout(), r, *asJSON); err != nil {
			return err
		}
		if len(r.Waits) > 0 || r.RAS.Wrong() {
			with = 1
		}
		return ended(with)
	}
	return c
}
