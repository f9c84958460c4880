package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"weft/internal/build"
	"weft/internal/nccl"
)

// noKernels are all events but those of kernels, which cost more than to record them: with them, whatever the profiler, the
// proxy of 2.30 connects once more for each channel, and while a kernel runs it gives way to other threads an eighth as often.
const noKernels = "group,coll,p2p,proxyop,proxystep,netplugin,groupapi,collapi,p2papi,kernellaunch,cecoll,cesync,cebatch"

// modesUnderNCCL measures what modes take of an all-reduce of the real NCCL, on the simulated CUDA: there the profiler's events
// come, too.
func modesUnderNCCL(c *config) error {
	if err := os.Setenv(build.DistEnv, c.dist); err != nil {
		return err
	}
	releases, err := nccl.Releases()
	if err != nil {
		return err
	}
	if len(releases) == 0 {
		fmt.Printf("  left out: %s names no release (make nccl-host builds one; NCCL_SRC=TREE does both)\n", nccl.Env)
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, r := range releases {
		network, err := nccl.TCP(r)
		if err != nil {
			return err
		}
		rows := []mode{modes[0], modes[1], modes[4], modes[5], {"trace, no kernels", "trace", modes[5].part, noKernels}}
		b, err := c.alternate(rows, 2, func(env []string) ([]float64, error) {
			speeds, cpu, err := nccl.Timed(ctx, nccl.Job{Release: r, Network: network, Ranks: 2, Pin: runtime.NumCPU() > 1, Limit: time.Minute, Env: env,
				Mode: []string{"ops=allreduce", "batches=6", "iters=3"}}, "16M")
			if err != nil {
				return nil, err
			}
			return []float64{speeds[0].Median, cpu.Seconds()}, nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		b.show(0, fmt.Sprintf("NCCL %s, all-reduce of 16 MiB, two ranks over TCP, each with CPUs of its own: ms per operation, %d rounds", r, c.rounds), "%7.3f", 1e-3)
		b.modes = unasked(rows)
		b.show(1, "CPU s of the whole job, with its beginning and end; where a profiler wants events of kernels, NCCL's proxy polls for them", "%7.3f", 1)
	}
	return nil
}
