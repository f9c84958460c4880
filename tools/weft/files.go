package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
)

// fileCall is a command that reads files of processes and is being carried out.
type fileCall struct {
	name           string
	flags          *flag.FlagSet
	stdout, stderr io.Writer
}

// newFileCall makes the command of that name, as users type it behind "weft".
func newFileCall(name string, stdout, stderr io.Writer) *fileCall {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {}
	return &fileCall{name, f, stdout, stderr}
}

// parse returns the names that are given, or false and an exit status.
func (c *fileCall) parse(args []string, usage string) (names []string, status int, ok bool) {
	names, err := parseMixed(c.flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.flags.SetOutput(c.stdout)
		fmt.Fprint(c.stdout, usage)
		c.flags.PrintDefaults()
		return nil, 0, false
	case err != nil:
		fmt.Fprintf(c.stderr, "weft %s -h explains the flags\n", c.name)
		return nil, 2, false
	case len(names) == 0:
		return nil, c.refuse(fmt.Errorf("want files, or a folder with files, that processes have written (weft %s -h explains)", c.name)), false
	}
	return names, 0, true
}

func (c *fileCall) refuse(err error) int {
	fmt.Fprintf(c.stderr, "weft %s: %v\n", c.name, err)
	return 2
}

// print writes a report as text, or as one JSON document.
func (c *fileCall) print(r interface{ Text(io.Writer) error }, asJSON bool) error {
	if !asJSON {
		return r.Text(c.stdout)
	}
	e := json.NewEncoder(c.stdout)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
