package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"weft/internal/doctor"
)

const doctorUsage = `usage: weft doctor [flags]

Says how each release of NCCL would look for a network plugin on this machine, in
a process started with this environment, what it would find, and what is wrong:
each finding with its evidence, what follows from it and what mends it. It loads
and changes nothing. What a program or libnccl itself says of paths (RUNPATH) is
not seen. RCCL is told of where something of it is installed.

Exit status 0: nothing is wrong; 1: something is; 2: the machine cannot be read.

examples:
  weft doctor
  NCCL_NET_PLUGIN=weft weft doctor
  weft doctor --root /srv/images/node7   (a machine's file system, or a copy of what is
                             looked at: its environment is proc/self/environ there)

flags:
`

// runDoctor is "weft doctor".
func runDoctor(args []string) int { return doctorTo(args, os.Stdout, os.Stderr) }

func doctorTo(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("doctor", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {}
	root := f.String("root", "/", "the `folder` below which the machine's file system is")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stdout)
		fmt.Fprint(stdout, doctorUsage)
		f.PrintDefaults()
		return 0
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("there is nothing to say about %q", f.Arg(0))
		fmt.Fprintf(stderr, "weft doctor: %v\n", err)
	}
	if err != nil {
		fmt.Fprintln(stderr, "weft doctor -h explains the flags")
		return 2
	}
	m, err := doctor.Open(*root)
	if err != nil {
		fmt.Fprintf(stderr, "weft doctor: %v\n", err)
		return 2
	}
	for _, r := range m.Rows() {
		fmt.Fprintf(stdout, "%s\n  network   %s\n", r.Releases, r.Net)
		if r.Next != "" {
			fmt.Fprintf(stdout, "  later     when a process's last communicator has ended: %s\n", r.Next)
		}
		if r.Profiler != "" {
			fmt.Fprintf(stdout, "  profiler  %s\n", r.Profiler)
		}
	}
	findings := m.Examine()
	for _, x := range findings {
		fmt.Fprintf(stdout, "\n%s: %s\n  seen      %s\n  so        %s\n  mend      %s\n", x.Rule, x.What, x.Evidence, x.Consequence, x.Remedy)
	}
	fmt.Fprintf(stdout, "\n%d rules, %d finding%s\n", len(doctor.Rules()), len(findings), plural(len(findings)))
	if len(findings) > 0 {
		return 1
	}
	return 0
}
