package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/host"
	"weft/internal/junit"
)

func selftestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "selftest [flags]",
		Short: "whether this weft works on this machine, in a minute",
		Long: `Runs weft's own commands on this machine, one after the other: data through every
table over TCP, and over RDMA where there is a device; a file; collectives; the
contract of a plugin; many connections; what is recorded. Each is shown as it can be
given by hand. It says nothing of this machine's NCCL: weft check and weft doctor do.

Exit status 0: all passed; 1: something failed; 2: usage.`,
		Example: `  weft selftest
  weft selftest --junit report.xml`,
		Args: cobra.NoArgs,
	}
	var s selftest
	f := c.Flags()
	f.StringVar(&s.junit, "junit", "", "write JUnit XML to this `file`")
	f.StringVar(&s.plugin, "plugin", "", "the `library` to test (default: ../lib/libnccl-net-weft.so beside this program)")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print what the commands print")
	durationVar(f, &s.limit, "timeout", time.Minute, "limit of all of it")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if s.limit <= 0 {
			return errors.New("--timeout: want a positive time")
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return s.run(ctx, c.OutOrStdout())
	}
	return c
}

// selftest is "weft selftest" that is being carried out.
type selftest struct {
	plugin, junit string
	verbose       bool
	limit         time.Duration
}

// step is a command line of weft, in an environment of its own.
type step struct {
	name string
	env  []string
	args []string
	skip string // why it is left out
}

// passed is what became of a step.
type passed struct {
	step
	took   time.Duration
	output string
	failed string // "" if it did not
}

// steps are those for this machine; files go into a folder of theirs.
func (s *selftest) steps(me, dir string) []step {
	rdma := step{name: "data over RDMA", args: []string{"run", "--local", "--require", "rdma", "--sizes", "8,64K,4M", "--iters", "2"}}
	if found, _ := filepath.Glob("/sys/class/infiniband/*"); len(found) == 0 { // a pattern of ours is right
		rdma.skip = "this machine has no RDMA device"
	}
	tcp := []string{"NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=lo"}
	with := func(more ...string) []string { return append(append([]string{}, tcp...), more...) }
	return []step{
		{name: "every table carries data", env: tcp, args: []string{"run", "--local", "--abi", "all", "--sizes", "8,64K", "--iters", "2"}},
		rdma,
		{name: "a file arrives whole", env: tcp, args: []string{"run", "--local", "--input", me}},
		{name: "collectives", env: with("WEFT_COLLNET=1"), args: []string{"run", "--local", "--coll", "allreduce", "--type", "all", "--op", "all", "--sizes", "8K", "--iters", "1"}},
		{name: "connections at once", env: tcp, args: []string{"perf", "conns", "--local", "-n", "200", "--rounds", "1"}},
		{name: "both ways at once", env: tcp, args: []string{"perf", "bibw", "--local", "--sizes", "8,1M", "--duration", "100ms", "--rounds", "1"}},
		{name: "what is recorded", env: with("WEFT_PROFILE=trace,metrics", "WEFT_PROFILE_DIR="+dir), args: []string{"run", "--local", "--sizes", "64K"}},
		{name: "records can be read", args: []string{"trace", "show", dir}},
		{name: "counts can be read", args: []string{"metrics", dir}},
		{name: "the contract of a plugin", env: tcp, args: []string{"conform", "--abi", fmt.Sprint(host.FamilyNet.Newest()), "--rule", "data.,conn.,group.,test.,size.", s.plugin}},
	}
}

func (s *selftest) run(ctx context.Context, w io.Writer) (err error) {
	if s.plugin, err = pluginAt("--plugin", s.plugin); err != nil {
		return err
	}
	me, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weft-selftest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("the %v of --timeout are over", s.limit))
	defer cancel()
	var all []passed
	failed := 0
	for _, step := range s.steps(me, dir) {
		if takesPlugin := step.args[0] == "run" || step.args[0] == "perf"; takesPlugin {
			step.args = append(step.args, "--plugin", s.plugin)
		}
		p := s.one(ctx, me, step)
		all = append(all, p)
		word := "ok"
		switch {
		case p.skip != "":
			word = "skip"
		case p.failed != "":
			word, failed = "FAIL", failed+1
		}
		fmt.Fprintf(w, "%-4s  %-26s %5.1f s  %s\n", word, p.name, p.took.Seconds(), p.line())
		if p.failed != "" || s.verbose {
			fmt.Fprint(w, indented(p.output))
		}
		if p.failed != "" {
			fmt.Fprintf(w, "      %s\n", p.failed)
		}
	}
	if s.junit != "" {
		if err := writeWhole(s.junit, func(w io.Writer) error { return junitOf(w, all) }); err != nil {
			return failure{fmt.Errorf("--junit: %w", err)}
		}
	}
	if failed > 0 {
		fmt.Fprintf(w, "%d of %d failed\n", failed, len(all))
		return status(1)
	}
	fmt.Fprintf(w, "all is well\n")
	return nil
}

func (s *selftest) one(ctx context.Context, me string, step step) passed {
	p := passed{step: step}
	if step.skip != "" {
		return p
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, me, step.args...)
	cmd.Env = append(os.Environ(), step.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which ends its hosts too
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	p.took, p.output = time.Since(began), out.String()
	switch {
	case ctx.Err() != nil:
		p.failed = "not done: " + context.Cause(ctx).Error()
	case err != nil:
		p.failed = err.Error()
	}
	return p
}

// line is the step as it is given by hand.
func (p *passed) line() string {
	if p.skip != "" {
		return p.skip
	}
	return strings.Join(append(append([]string{}, p.env...), append([]string{"weft"}, p.args...)...), " ")
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "      %s", line)
	}
	return b.String()
}

// junitOf writes what CI systems read.
func junitOf(w io.Writer, all []passed) error {
	var d junit.Document
	for _, p := range all {
		var failed, skipped *junit.Reason
		switch {
		case p.skip != "":
			skipped = &junit.Reason{Message: p.skip}
		case p.failed != "":
			failed = &junit.Reason{Message: p.failed, Text: p.line() + "\n" + p.output}
		}
		d.Suite("weft selftest").Add(p.name, "weft.selftest", p.took, failed, skipped)
	}
	return d.Write(w)
}
