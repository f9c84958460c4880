package main

import (
	"flag"
	"fmt"
	"strconv"
	"time"
)

// duration is a flag that says what to write when it is given a bare number.
type duration struct{ d *time.Duration }

func durationVar(f *flag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var(duration{p}, name, "`time`, such as 90s or 5m: "+usage)
}

func (v duration) String() string {
	if v.d == nil {
		return ""
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
