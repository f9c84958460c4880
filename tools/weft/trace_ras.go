package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"weft/internal/trace/model"
	"weft/internal/trace/ras"
)

// rasFlag is --ras, or --ras=HOST:PORT.
type rasFlag struct{ address string }

// rasOf adds the flag to those of a command.
func rasOf(flags *pflag.FlagSet) *rasFlag {
	f := &rasFlag{}
	flags.VarPF(f, "ras", "", "ask NCCL's RAS too, at `HOST:PORT` (=HOST:PORT; without, at NCCL_RAS_ADDR or "+ras.Default+")").NoOptDefVal = "true"
	return f
}

func (f *rasFlag) String() string { return f.address }

// Type is that of a flag whose value may be left out.
func (f *rasFlag) Type() string { return "bool" }

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
