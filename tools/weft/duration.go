package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// duration is a flag that says what to write when it is given a bare number.
type duration struct{ d *time.Duration }

func durationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var(duration{p}, name, usage)
}

func (v duration) String() string {
	if *v.d == 0 {
		return "0" // which the help leaves out
	}
	return v.d.String()
}

func (v duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil {
		*v.d = d
		return nil
	}
	if _, bare := strconv.ParseFloat(s, 64); bare == nil {
		return fmt.Errorf("a time has a unit: write %ss", s)
	}
	return fmt.Errorf("no time: write 90s, 5m or 1h30m")
}

func (v duration) Type() string { return "time" }
