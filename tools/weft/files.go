package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weft/internal/trace"
)

// ofFiles are the arguments of a command that reads files of processes.
func ofFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want files, or a folder with files, that processes have written (%s -h explains)", c.CommandPath())
	}
	return nil
}

// load has the status 1 where some file cannot be read, or not whole. None that can be is an error.
func load(c *cobra.Command, names []string) (files []*trace.File, with int, err error) {
	files, bad, err := trace.Load(names)
	if err != nil {
		return nil, 0, err
	}
	for _, err := range bad {
		fmt.Fprintf(c.ErrOrStderr(), "%s: %v\n", c.CommandPath(), err)
		with = 1
	}
	if len(files) == 0 {
		return nil, 0, status(2)
	}
	for _, f := range files {
		if len(f.Notes) > 0 {
			with = 1
		}
	}
	return files, with, nil
}

// printReport writes a report as text, or as one JSON document.
func printReport(w io.Writer, r interface{ Text(io.Writer) error }, asJSON bool) error {
	if !asJSON {
		return r.Text(w)
	}
	return encode(w, r)
}

// encode writes a JSON document for people and programs.
func encode(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
