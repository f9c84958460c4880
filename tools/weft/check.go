package main

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/loads"
)

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check [flags] [NCCL.so]",
		Short: "prove that an NCCL loads this weft",
		Long: `Has an NCCL, by itself the libnccl.so.2 that the loader finds, make a communicator of
one rank in a process with this environment, and says which plugins it has loaded, through
which table weft was used, and what NCCL itself said about it. The machine's first GPU
is used for a moment. Without a GPU NCCL ends before it looks for plugins: then the same
process opens the names for which this release looks, in its order; whether NCCL would
succeed with them is not seen then.

Exit status 0: this NCCL loads this weft; 1: it does not, or loads another; 2: the library
is no NCCL, or cannot be loaded.`,
		Example: `  weft check
  NCCL_NET_PLUGIN=weft weft check /usr/lib/x86_64-linux-gnu/libnccl.so.2
  weft check --json ~/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2`,
		Args: cobra.MaximumNArgs(1),
	}
	var o loads.Options
	f := c.Flags()
	f.StringVar(&o.Ours, "plugin", "", "the `library` that is expected (default: ../lib/libnccl-net-weft.so beside this program)")
	f.StringVar(&o.Host, "host", "", "the weft-host `program` (default: beside this one)")
	asJSON := f.Bool("json", false, "write a JSON document")
	durationVar(f, &o.Wait, "timeout", time.Minute, "limit of each step")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		o.NCCL = "libnccl.so.2"
		if len(args) > 0 {
			o.NCCL = args[0]
			if strings.Contains(o.NCCL, "/") || exists(o.NCCL) {
				if !exists(o.NCCL) {
					return errors.New(o.NCCL + ": no such file")
				}
				if o.NCCL, err = filepath.Abs(o.NCCL); err != nil {
					return err
				}
			}
		}
		if o.Wait <= 0 {
			return errors.New("--timeout: want a positive time")
		}
		if o.Ours, err = pluginAt("--plugin", o.Ours); err != nil {
			return err
		}
		if o.Host == "" {
			if o.Host, err = ownHost(); err != nil {
				return err
			}
		}
		r, err := loads.Check(o)
		if err != nil {
			return err
		}
		if err := printReport(c.OutOrStdout(), r, *asJSON); err != nil {
			return failure{err}
		}
		if !r.OK {
			return status(1)
		}
		return nil
	}
	return c
}
