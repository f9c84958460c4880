package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
	"weft/internal/node"
)

func doctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "say how NCCL looks for plugins on this machine, and what is wrong",
		Long: `Says what is wrong on this machine for NCCL with weft, in a process started with
this environment: libraries and how each release of NCCL looks for plugins, RDMA
devices and GIDs, PCIe, limits, GPUs, interfaces, TCP, counters. Each finding has
a code, its evidence, what follows from it and the command that mends it. It loads
and changes nothing. What a program or libnccl itself says of paths (RUNPATH) is
not seen; RCCL is told of where something of it is installed.

Exit status 0: nothing is wrong, or there is advice only; 1: something is; 2: the
machine cannot be read. So a node health check can run it as it is.`,
		Example: `  weft doctor
  NCCL_NET_PLUGIN=weft weft doctor --quiet
  weft doctor --json | jq '.hosts[0].findings[].code'
  weft doctor --bundle ticket.tar.gz    (evidence for a ticket: names, addresses and
                             secrets are replaced; --root reads what it unpacks to)
  weft doctor --explain WEFT-070
  weft doctor --hosts node1,node2,node3    (the MTU of the paths between them, too)
  srun -N 8 weft doctor                 (each node is asked; rank 0 tells)
  weft doctor --root /srv/images/node7  (a machine's file system, or a copy of what is
                             looked at: its environment is proc/self/environ there)
  * || check_cmd_status -t 30 -r 0 env NCCL_NET_PLUGIN=weft weft doctor --quiet    (nhc.conf)`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is nothing to say about %q", args[0])
			}
			return nil
		},
	}
	var o doctorOptions
	f := c.Flags()
	o.lookFlags = lookOf(f)
	o.hosts.flags(f)
	f.Lookup("hosts").Usage = "ask weft doctor on each of these `hosts` by ssh, such as node1,node2, with this process's NCCL_ and WEFT_ variables, probe what passes between them, and say what is wrong"
	f.BoolVar(&o.local, "local", false, "look at this machine alone, whatever a launcher has set")
	f.BoolVar(&o.asked, "asked", false, "a process with --hosts asks, and stdin says what")
	f.Lookup("asked").Hidden = true
	f.BoolVar(&o.json, "json", false, "print the report as JSON, in the form of docs/doctor.md")
	f.BoolVar(&o.quiet, "quiet", false, "print the verdict alone, one line")
	f.StringVar(&o.bundle, "bundle", "", "write the evidence into this `file`, a tar.gz, without what is private")
	f.StringVar(&o.explain, "explain", "", "say what a `code` means, as WEFT-070, and look at nothing")
	f.BoolVar(&o.rules, "rules", false, "list all rules, and look at nothing")
	durationVar(f, &o.between, "look", time.Second, "the time between two looks at counters, on this machine")
	var codes []string
	for _, r := range doctor.Rules() {
		codes = append(codes, fmt.Sprintf("%s\t%s", r.Code, r.Title))
	}
	oneOf(c, "explain", codes...)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

type doctorOptions struct {
	*lookFlags
	placing
	bundle, explain    string
	json, quiet, rules bool
	asked              bool          // by a process with --hosts
	between            time.Duration // two looks at counters
}

func (o *doctorOptions) run(c *cobra.Command) error {
	stdout := c.OutOrStdout()
	switch {
	case o.explain != "":
		r, err := doctor.Find(o.explain)
		if err != nil {
			return err
		}
		r.Print(stdout)
		return nil
	case len(o.hosts.list) > 0 && (o.bundle != "" || c.Flags().Changed("root")):
		return errors.New("--bundle and --root are about one machine, and --hosts are several")
	case len(o.hosts.list) > 0:
		hosts, unasked, err := o.askHosts(c)
		if err != nil {
			return err
		}
		return o.tell(stdout, doctor.NewReport(hosts...).Missing(unasked...))
	case o.rules:
		for _, r := range doctor.Rules() {
			fmt.Fprintf(stdout, "%s  %-6s  %s: %s\n", r.Code, r.Severity, r.Topic, r.Title)
		}
		return nil
	}
	if o.hosts.leash {
		return o.again(c)
	}
	if o.bundle == "" && !c.Flags().Changed("root") {
		if err := o.find(c.Flags().Changed); err != nil {
			o.place = nil // half of a launcher's variables is no job
		}
	}
	type examined struct {
		x    *doctor.Exam
		host doctor.Host
	}
	e, err := looked(o.lookFlags, func(m *machine.Machine) (e examined, err error) {
		if e.x, err = doctor.Examine(m, o.between); err == nil {
			e.host = e.x.Host()
		}
		return e, err
	})
	if o.place != nil {
		mine := found{Host: &e.host, Name: node.Name()}
		if err != nil {
			mine.Host, mine.Err = nil, err.Error()
		}
		defer e.host.Answer().Close()
		hosts, unasked, err := o.askJob(c, mine)
		if err != nil {
			return failure{fmt.Errorf("%s has started this process as one of %d: %w (--local looks at this machine alone)", o.place.Launcher, o.place.Size, err)}
		}
		if o.rank > 0 {
			return nil // rank 0 tells
		}
		return o.tell(stdout, doctor.NewReport(hosts...).Missing(unasked...))
	}
	if err != nil {
		return err
	}
	if o.asked {
		return o.answer(c, e.host)
	}
	report := doctor.NewReport(e.host)
	if o.bundle != "" {
		if err := writeBundle(o.bundle, e.x, report); err != nil {
			return err
		}
	}
	return o.tell(stdout, report)
}

// again begins anew with the variables that come ahead on stdin: a machine is looked at with those that its process was started with.
func (o *doctorOptions) again(c *cobra.Command) error {
	if _, err := o.hosts.leashed(c.Context(), c.InOrStdin()); err != nil {
		return err
	}
	me, err := os.Executable()
	if err != nil {
		return err
	}
	args := slices.Clone(os.Args)
	for i, a := range args {
		if a == "--leash" {
			args[i] = "--asked"
		}
	}
	return syscall.Exec(me, args, os.Environ())
}

// tell prints a report and ends with its status.
func (o *doctorOptions) tell(w io.Writer, report doctor.Report) error {
	several := len(report.Hosts) != 1 || len(report.Unasked) > 0
	switch {
	case o.json:
		if err := encode(w, report); err != nil {
			return err
		}
	case several && o.quiet:
		fmt.Fprintln(w, report.Sentence())
	case several:
		report.PrintAcross(w)
	case o.quiet:
		fmt.Fprintln(w, report.Hosts[0].Sentence())
	default:
		report.Hosts[0].Print(w)
	}
	return ended(report.Status())
}
