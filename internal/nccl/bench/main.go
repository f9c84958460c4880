// Command bench measures weft beside NCCL's own networks, under the real NCCL on the simulated CUDA (make bench-nccl): the
// time of operations over TCP and over one simulated RDMA device, in rounds that alternate.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"weft/internal/beat"
	"weft/internal/nccl"
	"weft/internal/rounds"
	"weft/internal/simverbs"
)

// config is what the user asked for.
type config struct {
	rounds, ranks    int
	ops, sizes, only []string
	pin              bool
}

func main() {
	c := &config{}
	list := func(into *[]string, name, value, about string) {
		*into = strings.Split(value, ",")
		flag.Func(name, fmt.Sprintf("%s (default %s)", about, value), func(v string) error {
			*into = strings.Split(v, ",")
			return nil
		})
	}
	list(&c.ops, "ops", "allreduce,alltoall,sendrecv", "operations")
	list(&c.sizes, "sizes", "64,512,4K,16K,64K,256K,1M,4M,16M,64M", "bytes of an operation")
	list(&c.only, "only", "tcp,rdma", "networks")
	flag.IntVar(&c.rounds, "n", 9, "rounds; medians are shown")
	flag.IntVar(&c.ranks, "ranks", 2, "ranks, each a host of its own")
	flag.BoolVar(&c.pin, "pin", true, "give each rank CPUs of its own, as hosts have them; -pin=false leaves them to chance")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-nccl:", err)
		os.Exit(1)
	}
}

func (c *config) run(ctx context.Context) error {
	if unknown := slices.DeleteFunc(slices.Clone(c.only), func(n string) bool { return n == "tcp" || n == "rdma" }); len(unknown) > 0 || c.rounds < 1 || flag.NArg() > 0 {
		return fmt.Errorf("-only %v -n %d %v: networks are tcp and rdma, and there is at least one round", c.only, c.rounds, flag.Args())
	}
	releases, err := nccl.Releases()
	if err == nil && len(releases) == 0 {
		err = fmt.Errorf("%s names no release: make nccl-host builds one", nccl.Env)
	}
	if err != nil {
		return err
	}
	for _, r := range releases {
		for _, name := range c.only {
			if err := c.beside(ctx, r, name); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
	}
	return nil
}

// beside measures weft and NCCL's own network over the same wires.
func (c *config) beside(ctx context.Context, r nccl.Release, name string) (err error) {
	sides := pair{}
	switch name {
	case "tcp":
		weft, errWeft := nccl.TCP(r)
		own, errOwn := nccl.Socket(r)
		sides, err = pair{weft, own}, errors.Join(errWeft, errOwn)
	case "rdma":
		weft, errWeft := nccl.RDMA(simverbs.Device{})
		if errWeft != nil {
			return errWeft
		}
		defer func() { err = errors.Join(err, weft.World.Remove()) }()
		own, errOwn := nccl.IB(weft.World)
		sides, err = pair{weft, own}, errOwn
	}
	if err != nil {
		return err
	}
	where := "which share CPUs"
	if c.pin {
		where = "each with CPUs of its own"
	}
	fmt.Printf("\nNCCL %s over %s: microseconds of an operation of %d ranks, %s, medians of %d rounds; %s / weft above 1: weft is ahead\n",
		r, sides[0].Name, c.ranks, where, c.rounds, sides[1].Name)
	fmt.Printf("  %-13s %10s %12s %12s %8s   %s\n", "", "bytes", "weft", sides[1].Name, "ratio", "of the rounds")
	for _, op := range c.ops {
		if op != "allreduce" && !r.Since(2, 7) {
			continue // there are no sends
		}
		t, err := c.measure(ctx, r, sides, op)
		fmt.Print(t) // of the rounds until then, too
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	return nil
}

// pair is weft, and what is beside it.
type pair [2]nccl.Network

// measure runs the rounds of an operation; which side begins alternates.
func (c *config) measure(ctx context.Context, r nccl.Release, sides pair, op string) (table, error) {
	var t table
	for round := range c.rounds {
		for i := range sides {
			side := (i + round) % len(sides)
			speeds, disturbed, err := c.calmly(ctx, r, sides[side], op, fmt.Sprintf("round %d of %d", round+1, c.rounds))
			if err == nil {
				err = t.add(side, speeds, disturbed)
			}
			if err != nil {
				return t, fmt.Errorf("round %d over %s: %w", round+1, sides[side].Name, err)
			}
		}
	}
	return t, nil
}

// calmly runs a job, says that it is under way, and whether other processes disturbed it.
func (c *config) calmly(ctx context.Context, r nccl.Release, n nccl.Network, op, what string) (speeds []nccl.Speed, disturbed bool, err error) {
	defer beat.Start(func(since time.Duration) { fmt.Fprintf(os.Stderr, "... %s over %s, %s, %v\n", op, n.Name, what, since) }).Stop()
	var used time.Duration
	disturbed, err = rounds.Calmly(func() time.Duration { return used }, func() error {
		of, cpu, err := c.job(ctx, r, n, op)
		speeds, used = of, used+cpu
		return err
	})
	return speeds, disturbed, err
}

// job has the ranks of one job time the operation, in processes of their own.
func (c *config) job(ctx context.Context, r nccl.Release, n nccl.Network, op string) (speeds []nccl.Speed, used time.Duration, err error) {
	return nccl.Timed(ctx, nccl.Job{Release: r, Network: n, Ranks: c.ranks, Pin: c.pin, Limit: 10 * time.Minute, Mode: []string{"ops=" + op}}, c.sizes...)
}
