package main

import "github.com/spf13/cobra"

func traceCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "trace",
		Short: "show, merge and judge what processes have recorded",
		Long: `Reads what processes have recorded with WEFT_PROFILE=trace: the files
weft-HOST-PID-ID.rec of WEFT_PROFILE_DIR, whole, of a process that was killed, or
of one that is still running. A folder stands for all such files in it.`,
		Example: `  weft trace show weft-node1-4242-5e1f09aa.rec
  weft trace merge traces/ -o job.pftrace
  weft trace report traces/
  weft trace stall traces/`,
	}, traceShow(), traceMerge(), traceReport(), traceStall(), traceInspector())
}
