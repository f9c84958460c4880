package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"weft/internal/trace/contents"
)

func traceShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show [flags] FILE|DIR...",
		Short: "what is in each file",
		Long: `Says what is in each file: the process, what was lost of its records, its threads,
communicators, connections, and how many events there are of each type. A file that
a process is still writing can be read.
Exit status 0: every file was read; 1: some could not be, or not
whole; 2: none could, or usage.`,
		Example: `  weft trace show weft-node1-4242-5e1f09aa.rec
  weft trace show --json traces/`,
		Args: ofFiles,
	}
	asJSON := c.Flags().Bool("json", false, "write a JSON object a file, each on a line")
	c.RunE = func(c *cobra.Command, names []string) error {
		files, with, err := load(c, names)
		if err != nil {
			return err
		}
		stdout := c.OutOrStdout()
		for i, f := range files {
			in := contents.New(f)
			files[i] = nil // its records are no longer needed
			if *asJSON {
				err = json.NewEncoder(stdout).Encode(in)
			} else {
				if i > 0 {
					fmt.Fprintln(stdout)
				}
				err = in.Text(stdout)
			}
			if err != nil {
				return err
			}
		}
		return ended(with)
	}
	return c
}
