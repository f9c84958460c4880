package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"weft/internal/abidiff"
)

func abiCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "abi [flags] [WHAT [WHAT]]",
		Short: "what plugin tables are, and in what two of them, two releases or headers differ",
		Long: `Says what the tables are that NCCL looks up in a plugin, and in what two of them differ:
which functions and fields are new, gone, elsewhere or of another type, and how weft
serves both. WHAT is
  FAMILY VERSION  a table of this build: net, collNet, profiler or tuner, and v8. Of the
                  second one VERSION is enough. ncclNet_v8 is the same
  RELEASE         a release of NCCL, as 2.22.3: what it looks up, in which order, the
                  table that it takes of weft, the limits and values that it knows
  PATH            a header, or a folder of them, as of a new release
Without anything it lists the tables and releases that this build knows. One table is
spelled out, with offsets; a header alone is compared with what this build knows.
Names are no difference: a parameter that is only called otherwise is told, but counts
for nothing.
Exit status 0: no difference; 1: there is one; 2: a header cannot be read, or usage.`,
		Example: `  weft abi
  weft abi net v8
  weft abi net v8 v9
  weft abi --table profiler v5 v6
  weft abi 2.19.3 2.22.3
  weft abi nccl/src/include
  weft abi old/net_v9.h new/net_v10.h
  weft abi --json net v8 v9 | jq -r '.tables[].types[].changes[].says'`,
	}
	f := c.Flags()
	asJSON := f.Bool("json", false, "write JSON")
	asTable := f.Bool("table", false, "write tables in Markdown, one side beside the other")
	c.RunE = func(c *cobra.Command, what []string) error {
		if *asJSON && *asTable {
			return errors.New("--json and --table are two ways to write the same: give one")
		}
		r, err := abidiff.Ask(what)
		if err != nil {
			return err
		}
		write := r.Text
		switch {
		case *asTable:
			write = r.Markdown
		case *asJSON:
			write = func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetEscapeHTML(false)
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
		}
		if err := write(c.OutOrStdout()); err != nil {
			return err
		}
		if r.Differs() {
			return status(1)
		}
		return nil
	}
	return c
}
