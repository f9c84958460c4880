package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// figuresOf runs a program that measures, and returns what it says, a name and numbers a line.
func figuresOf(env []string, program string, args ...string) (map[string][]float64, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	f := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		for _, w := range words[1:] {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			f[words[0]] = append(f[words[0]], v)
		}
	}
	return f, nil
}

// both runs the loop of both ends once and returns its figures by name.
func (c *config) both(env []string, plugin string, args ...string) (map[string][]float64, error) {
	f, err := figuresOf(env, c.bothEnds, append([]string{plugin}, args...)...)
	if err == nil && (len(f["ns"]) != 1 || len(f["idle.ns"]) != 1) {
		err = fmt.Errorf("%s says %v", c.bothEnds, f)
	}
	return f, err
}

// used is the CPU time of this process and of all those of the measurement that have ended.
func used() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if unix.Getrusage(who, &r) == nil {
			sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return sum
}
