package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/lab"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab [flags] -- CMD [ARG...]",
		Short: "run a command in virtual machines with Soft-RoCE",
		Long: `Boots virtual machines whose root is this machine's file system (what they write
is forgotten, except in folders named with --share), with Soft-RoCE (rdma_rxe) on
every network card, and runs CMD on each in the current folder. Output comes back
as it is written, behind the node's number where there are several.

One machine (--nodes 1) has three cables from itself to itself, each a subnet:
ends a0 and b0 with RDMA devices rxa0 and rxb0, and so on. Two to four machines
(node0, node1, ...) are joined as a full mesh, ring or line; each cable is a subnet,
each node has eth0, eth1, ... with rxe0, rxe1, ...

CMD's environment is this one's, and:
  RANK, NNODES, WORLD_SIZE   the node, and how many there are
  MASTER_ADDR, MASTER_PORT   how to reach node 0, when every node has a cable to it
                             (so that weft run joins the nodes without a flag)
several machines:
  LAB_NICS, LAB_RDMA, LAB_ADDRS, LAB_PEERS     the node's cables in order: interface,
                             RDMA device, own address, number of the neighbour
  LAB_NICS_N, LAB_RDMA_N, LAB_ADDRS_N, LAB_PEER_N   those to neighbour N alone, and
                             N's addresses on them
one machine:
  LAB_NICS_A, LAB_RDMA_A, LAB_ADDRS_A, and _B  both ends of the cables, in order

Needs the packages qemu-system-x86 and iproute2, and apt to download the kernel
once (some 70 MB; it is kept in the user's cache folder; nothing is installed).
Exit status: CMD's, the first that is not 0 where several nodes ran it; 2 usage;
124 the time was up; 125 the lab did not come up, or a machine died.`,
		Example: `  weft lab -- ibv_devinfo
  weft lab -- dist/bin/weft conform dist/lib/libnccl-net-weft.so
  weft lab --nodes 3 -- dist/bin/weft run --sizes 8,64K
  weft lab --nodes 2 --mtu 9000 --between 1500 -- dist/bin/weft run -v
  weft lab --nodes 2 --cables 2 -- sh -c 'ping -c 1 ${LAB_PEER_0:-$LAB_PEER_1}'`,
	}
	l := labFlags{}
	f := c.Flags()
	f.SetInterspersed(false) // behind CMD, flags are CMD's
	f.IntVar(&l.Nodes, "nodes", 1, "machines, 1 to 4")
	f.StringVar((*string)(&l.Shape), "topology", string(lab.Mesh), "of several machines: mesh, ring or line")
	f.IntVar(&l.Cables, "cables", 0, "cables between neighbours, or of one machine with itself (default: 1, or 3)")
	f.IntVar(&l.MTU, "mtu", 4500, "of the interfaces: 4500 carries RDMA with 4096, 1500 with 1024")
	f.IntVar(&l.Between, "between", 0, "`MTU` of a port between the ends of each cable, which drops what is larger and tells nobody (default: none)")
	f.IntVar(&l.CPUs, "cpus", 0, "of each machine (default: 2 for one machine, 1 each for several)")
	f.IntVar(&l.MemMB, "mem", 0, "`MB` of memory of each machine (default: 1024 for one machine, 512 each for several)")
	f.StringVar(&l.Kernel, "kernel", "6.1", "`version`: 6.1, or 6.12, which has udmabuf")
	f.StringArrayVar(&l.Share, "share", nil, "`folder` that the machines may write to; may be repeated")
	durationVar(f, &l.Boot, "boot", 2*time.Minute, "limit until all machines are up")
	durationVar(f, &l.limit, "timeout", 10*time.Minute, "limit of CMD")
	f.BoolVar(&l.KeepLogs, "keep", false, "keep the run's folder with consoles and QEMU's messages, and say where it is")
	f.BoolVar(&l.console, "console", false, "print the machines' consoles to stderr")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "do not say what the lab does")
	oneOf(c, "topology", string(lab.Mesh), string(lab.Ring), string(lab.Line))
	oneOf(c, "kernel", "6.1", "6.12")
	c.RunE = func(c *cobra.Command, args []string) error {
		return l.run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

// labFlags is what "weft lab" is asked for.
type labFlags struct {
	lab.Config
	limit          time.Duration
	console, quiet bool
}

func (f *labFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || f.limit <= 0 || f.Boot <= 0 {
		return errors.New("want a command to run, and positive limits (weft lab -h explains)")
	}
	if err := f.Check(); err != nil {
		return fmt.Errorf("%w (weft lab -h explains)", err)
	}
	if !f.quiet {
		f.Note = func(format string, a ...any) { fmt.Fprintf(stderr, "weft lab: "+format+"\n", a...) }
	}
	if f.console {
		f.Console = stderr
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	l, err := lab.Boot(ctx, f.Config)
	if err != nil {
		fmt.Fprintf(stderr, "weft lab: %v\n", err)
		return status(labBroken)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	return ended(runOnAll(ctx, l, args, stdout, stderr))
}

// The statuses of weft lab itself, which timeout and env have too.
const (
	labTimeout = 124
	labBroken  = 125
)

// runOnAll runs a command on every node and returns the first status that is not 0.
func runOnAll(ctx context.Context, l *lab.Lab, args []string, stdout, stderr io.Writer) int {
	var mu sync.Mutex
	codes := make([]int, len(l.Nodes))
	var wg sync.WaitGroup
	for i, n := range l.Nodes {
		out, errs := io.Writer(stdout), io.Writer(stderr)
		if len(l.Nodes) > 1 {
			prefix := fmt.Sprintf("[%d] ", i)
			o, e := lab.NewPrefixed(stdout, prefix, &mu), lab.NewPrefixed(stderr, prefix, &mu)
			defer o.Flush()
			defer e.Flush()
			out, errs = o, e
		}
		wg.Go(func() {
			status, err := n.Run(ctx, lab.Command{Args: args, Stdout: out, Stderr: errs})
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				status = labTimeout
			case err != nil:
				status = labBroken
			}
			if err != nil {
				fmt.Fprintf(stderr, "weft lab: node %d: %v\n", i, err)
			}
			codes[i] = status
		})
	}
	wg.Wait()
	for _, c := range codes {
		if c != 0 {
			return c
		}
	}
	return 0
}
