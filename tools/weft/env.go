package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/doctor/machine"
	"weft/internal/info/env"
)

func envCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "env [flags]",
		Short: "the variables that a process needs on this machine to use NCCL with weft",
		Long: `Prints the variables that a process needs on this machine to use NCCL with weft,
each with the reason: weft's name, where its library lies if the loader does not
look there, and what mends findings of weft doctor. What is right as it is is not
printed, and what no variable mends is named at the end.

Exit status 0: printed; 1: no NCCL will find weft even so; 2: the machine cannot be
read, or usage.`,
		Example: `  eval "$(weft env)"
  weft env --format docker > weft.list; docker run --env-file weft.list ...
  weft env --format slurm    (what a TaskProlog prints: TaskProlog=/etc/slurm/weft.sh)
  weft env --format json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is nothing to say about %q", args[0])
			}
			return nil
		},
	}
	f := c.Flags()
	l := lookOf(f)
	format := f.String("format", "sh", "one of `"+strings.Join(env.Formats, ", ")+"`")
	library := f.String("library", "", "weft's library on that machine, where the loader does not find it: a `file` (default: the one beside this program)")
	oneOf(c, "format", env.Formats...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !slices.Contains(env.Formats, *format) {
			return fmt.Errorf("there is no format %q: it is one of %s", *format, strings.Join(env.Formats, ", "))
		}
		switch file, err := filepath.Abs(*library); {
		case *library != "" && err == nil:
			*library = file
		case *library == "" && filepath.Clean(l.root) == "/":
			*library, _ = ownLibrary() // without one, the report says that weft is not found
		}
		r, err := looked(l, func(m *machine.Machine) (*env.Report, error) { return env.New(m, *library) })
		if err != nil {
			return err
		}
		if err := r.Write(c.OutOrStdout(), *format); err != nil {
			return err
		}
		if r.Missing != "" {
			return failure{fmt.Errorf("no NCCL will find weft: %s; --library names its file", r.Missing)}
		}
		return nil
	}
	return c
}
