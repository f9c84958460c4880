package nccl

import (
	"runtime"
	"testing"
	"time"
)

// Operations are timed over weft and over NCCL's own networks, each of which is known by its log: a figure of a network that was
// not asked for would be a wrong one.
func TestSpeed(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		own, err := Socket(r)
		if err != nil {
			t.Fatal(err)
		}
		world := rdma(t, 1)
		ib, err := IB(world.World)
		if err != nil {
			t.Fatal(err)
		}
		networks := []Network{tcp(t, r), own, world, ib}
		for i, n := range networks {
			t.Run(n.Name, func(t *testing.T) {
				ops := []string{"allreduce", "alltoall", "sendrecv"}
				mode := []string{"speed", "sizes=64,64K,1M", "batches=3", "iters=10", "most=2M"}
				if !r.Since(2, 7) {
					ops, mode = ops[:1], append(mode, "ops=allreduce")
				}
				run := start(t, Job{Release: r, Network: n, Ranks: 2, Pin: runtime.NumCPU() > 1, Limit: time.Minute, Env: []string{OverEnv}}, mode...)
				if err := run.Wait(); err != nil {
					t.Fatal(err)
				}
				speeds, err := run.Speeds()
				if err != nil {
					t.Fatal(err)
				}
				for _, op := range ops {
					for _, bytes := range []int64{64, 64 << 10, 1 << 20} {
						if len(speeds) == 0 || speeds[0].Op != op || speeds[0].Bytes != bytes || speeds[0].Least <= 0 || speeds[0].Median < speeds[0].Least {
							t.Fatalf("%s of %d bytes is not the next of %v; rank 0 said:\n%s", op, bytes, speeds, run.Ranks[0].Said())
						}
						speeds = speeds[1:]
					}
				}
				if len(speeds) != 0 {
					t.Errorf("nobody asked for %v", speeds)
				}
				for j, other := range networks {
					run.Network = other
					if err := run.Over(); (err == nil) != (i == j) {
						t.Errorf("it went over %s; asked whether it went over %s: %v", n.Name, other.Name, err)
					}
				}
				if run.CPU() <= 0 {
					t.Error("the ranks have used no CPU time")
				}
			})
		}
	})
}

// What says otherwise than it should is no figure.
func TestSpeedsAreRead(t *testing.T) {
	for _, c := range []struct {
		line string
		want Speed
		ok   bool
	}{
		{"rank 0: speed alltoall 65536 bytes: median 68.487 us, least 66.034 us", Speed{"alltoall", 65536, 68.487, 66.034}, true},
		{"rank 0: speed alltoall 65536 bytes: median nan", Speed{}, false},
	} {
		run := &Run{Ranks: []*Rank{{lines: []string{"NCCL version", c.line, "rank 0: ok"}}}}
		got, err := run.Speeds()
		if (err == nil) != c.ok || c.ok && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%q: %v, %v", c.line, got, err)
		}
	}
}
