// Command campaign breaks jobs on purpose, at random, and counts how often weft names what is broken: which process, which
// device, which direction, and how soon (make faults-campaign). Jobs in which nothing is broken run beside, and nothing may be
// said of them.
//
//  1. A fault is drawn (draw.go): of which kind, on which network, of which rank, when.
//  2. A job is started, ranks that all-reduce without an end: hosts of tools/host (ring.go) or real NCCL (nccl.go), each a
//     host of its own, over Ethernet of the kernel or simulated RDMA (wires.go).
//  3. The fault is done to it, and what weft says is read (watch.go): the lines of WEFT_PROFILE=stall (line.go), or the
//     findings of weft trace report about the last seconds (report.go), as the kind has it.
//  4. All of it is a table (table.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// config is what the user asked for.
type config struct {
	faults   int
	parallel int
	clean    time.Duration
	lenient  bool
	draw     drawing
	verbose  bool
}

func main() {
	c := &config{}
	list := func(into *[]string, name, about string) {
		flag.Func(name, about+" (default: all)", func(v string) error {
			*into = strings.Split(v, ",")
			return nil
		})
	}
	flag.IntVar(&c.faults, "n", 200, "how many faults")
	flag.Uint64Var(&c.draw.seed, "seed", 1, "from which they are drawn")
	flag.IntVar(&c.parallel, "parallel", 2, "jobs at once")
	flag.DurationVar(&c.clean, "clean", 0, "instead: how long to run jobs in which nothing is broken, on a machine whose cores are all busy")
	flag.BoolVar(&c.lenient, "lenient", false, "a fault need only be named, within a minute, whoever else is")
	flag.BoolVar(&c.verbose, "v", false, "show what was said of each fault")
	list(&c.draw.kinds, "kinds", "kinds of faults")
	list(&c.draw.networks, "networks", "TCP, RDMA")
	list(&c.draw.programs, "programs", "ring, NCCL; the latter if "+nccl+" names a release")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "faults-campaign:", err)
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context) error {
	if flag.NArg() > 0 || c.faults < 1 || c.parallel < 1 {
		return fmt.Errorf("-n %d -parallel %d %v: at least one fault and one job", c.faults, c.parallel, flag.Args())
	}
	if err := apart(); err != nil {
		return err
	}
	if c.clean > 0 {
		return c.peace(ctx)
	}
	return c.war(ctx)
}

// war has all faults, some at once, and is an error if too few of them are named.
func (c *config) war(ctx context.Context) error {
	all, err := c.draw.faults(c.faults)
	if err != nil {
		return err
	}
	t := table{lenient: c.lenient}
	c.each(ctx, len(all), func(i int) {
		o := all[i].have(ctx, c.lenient)
		if ctx.Err() != nil && o.err != nil {
			return
		}
		t.add(o)
		if c.verbose || !o.right(c.lenient) {
			fmt.Println(o)
		}
	})
	fmt.Print(&t)
	return errors.Join(ctx.Err(), t.verdict())
}
