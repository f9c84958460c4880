package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"weft/internal/doctor/machine"
)

// lookFlags are those of commands that look at a machine.
type lookFlags struct {
	root    string
	timeout time.Duration
}

// lookOf adds them to those of a command.
func lookOf(f *pflag.FlagSet) *lookFlags {
	l := &lookFlags{}
	f.StringVar(&l.root, "root", "/", "the `folder` below which the machine's file system is")
	durationVar(f, &l.timeout, "timeout", 30*time.Second, "give up after this time: exit status 2")
	return l
}

// looked asks a machine in the time that there is: a file of a dead server can be waited for without end.
func looked[T any](l *lookFlags, ask func(*machine.Machine) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var none T
	m, err := machine.Open(l.root)
	if err != nil {
		return none, err
	}
	done := make(chan answer, 1)
	go func() {
		v, err := ask(m)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-time.After(l.timeout):
		return none, fmt.Errorf("the machine cannot be read within %v: %s does not answer; look at what it is on (mount, dmesg), or give more --timeout", l.timeout, m.Reading())
	}
}
