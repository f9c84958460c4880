package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"weft/internal/trace/model"
	"weft/internal/trace/ras"
)

// rasFlag is --ras, or --ras=HOST:PORT.
type rasFlag struct{ address string }

// rasFlag adds the flag to a command.
func (c *fileCall) rasFlag() *rasFlag {
	f := &rasFlag{}
	c.flags.Var(f, "ras", "ask NCCL's RAS too, at `HOST:PORT` (=HOST:PORT; without, at NCCL_RAS_ADDR or "+ras.Default+")")
	return f
}

func (f *rasFlag) String() string { return f.address }

// IsBoolFlag lets the address be left out.
func (f *rasFlag) IsBoolFlag() bool { return true }

func (f *rasFlag) Set(s string) error {
	if on, err := strconv.ParseBool(s); err == nil {
		f.address = ""
		if on {
			f.address = ras.Address()
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(s); err != nil {
		return fmt.Errorf("no HOST:PORT: %w", err)
	}
	f.address = s
	return nil
}

// hold asks RAS and holds its answer to what the files say; nil: nobody wants it.
func (f *rasFlag) hold(t *model.Trace, files ras.Files) *ras.Section {
	if f.address == "" {
		return nil
	}
	a, err := ras.Ask(context.Background(), f.address)
	if err != nil {
		return ras.Unanswered(err)
	}
	return ras.Compare(a, t, files)
}
