package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"weft/internal/version"
)

// manCommand is for who makes packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "write the man pages of all commands into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			c.Root().DisableAutoGenTag = true // it has the day in it
			return doc.GenManTreeFromOpts(c.Root(), doc.GenManTreeOptions{
				Path: args[0], CommandSeparator: "-", Header: &doc.GenManHeader{Section: "1", Source: version.String(), Manual: "weft"},
			})
		},
	}
}
