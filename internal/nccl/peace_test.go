package nccl

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// All collectives are right, from 8 bytes to 256 MiB; the largest in few steps, and once.
func TestCollectives(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		for _, sizes := range [][]string{{"min=8", "max=8M", "step=16", "rounds=2"}, {"min=32M", "max=256M", "step=8", "rounds=1"}} {
			t.Run(sizes[0]+" "+sizes[1], func(t *testing.T) {
				j.Limit = 15 * time.Minute
				peacefully(t, j, append([]string{"sizes"}, sizes...)...)
			})
		}
	})
}

// The receiver reads lines of LL128 while they arrive. NCCL itself would choose it only between GPUs with NVLink; asked for,
// it uses it here. That bytes arrive in order is shown by transport/fastpath (stress/inorder.c); here it is a matter of moments.
func TestLL128(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		if !j.Release.Since(2, 5) {
			t.Skipf("%s has no LL128", j.Release)
		}
		j.Env = []string{"NCCL_PROTO=LL128"}
		peacefully(t, j, "sizes", "ops=allreduce,allgather", "min=1K", "max=64K", "step=2", "rounds=10", "type=i32")
	})
}

// One bit that is spoiled on its way is seen: what the other tests call right is right.
func TestSpoiledBitIsSeen(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: 2, Env: []string{"SIMGPU_CORRUPT=5", "NCCL_PROTO=Simple"}},
			"sizes", "ops=allreduce", "min=64K", "max=1M", "rounds=4")
		if err := run.Wait(); err == nil || !strings.Contains(err.Error(), "operations were wrong") {
			t.Errorf("a spoiled bit goes unseen: %v", err)
		}
	})
}

// NCCL 2.20 to 2.23 (table v8) send all that is left of a registered buffer into a receive of one step, where the network
// takes GPU memory: the network has to cut it.
func TestRegisteredSend(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 20) || r.Since(2, 24) {
			t.Skipf("%s registers otherwise", r)
		}
		if os.Geteuid() != 0 {
			t.Skip("needs root to make a mount namespace, where nvidia_peermem is loaded")
		}
		for _, c := range []struct{ name, send, recv string }{{"sender", "send=1", "recv=0"}, {"receiver", "send=0", "recv=1"}, {"both", "send=1", "recv=1"}} {
			t.Run(c.name, func(t *testing.T) {
				j := Job{Release: r, Network: rdma(t, 1), Ranks: 2, Wrap: peermem, Env: []string{"SIMGPU_DMABUF=1", r.GDRLevel()}}
				run := peacefully(t, j, "registered", "bytes=8M", c.send, c.recv)
				if n := ours(t, run, 0, "nvidia_peermem is loaded"); n["INFO"] != 1 {
					t.Errorf("the device does not take GPU memory by its address, so nothing was registered: %v", n)
				}
			})
		}
	})
}

// peermem is in front of a command that shall find nvidia_peermem loaded.
var peermem = []string{"unshare", "-m", "--propagation", "private", "sh", "-c",
	"mount -t tmpfs tmpfs /sys/module && mkdir /sys/module/nvidia_peermem && echo 1 >/sys/module/nvidia_peermem/version && exec \"$@\"", "sh"}

// GPU memory is registered as DMA-BUFs, user buffers too, and data goes straight into it.
func TestGPUDirect(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		j := Job{Release: r, Network: rdma(t, 1), Ranks: 3, Env: []string{"SIMGPU_DMABUF=1", r.GDRLevel()}}
		if !r.Since(2, 24) { // they register buffers of the user by address, whatever the device says of DMA-BUFs
			if os.Geteuid() != 0 {
				t.Skip("needs root to make a mount namespace, where nvidia_peermem is loaded")
			}
			j.Wrap = peermem
		}
		mode := []string{"sizes", "max=4M", "step=64"}
		if r.Since(2, 19) {
			mode = append(mode, "reg=1")
		}
		run := peacefully(t, j, mode...)
		if matches(direct, logOf(t, run)) == 0 {
			t.Error("NCCL did not use GPUDirect")
		}
	})
}

var direct = regexp.MustCompile(`via NET/weft/.*/GDRDMA`)

// NCCL makes one device of two ports of a card, as it does from table v9 on, unless NCCL_IB_MERGE_NICS says otherwise. Up to 2.26 the
// ports stay in its topology beside that device, and it takes them.
func TestFusion(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 24) {
			t.Skipf("%s makes no devices of several", r)
		}
		env, err := TwoPorts(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, merge := range []string{"1", "0"} {
			t.Run("NCCL_IB_MERGE_NICS="+merge, func(t *testing.T) {
				run := peacefully(t, Job{Release: r, Network: rdma(t, 2), Ranks: 2, Env: []string{env, "NCCL_IB_MERGE_NICS=" + merge}}, "sizes", "max=8M", "step=64")
				if n := ours(t, run, 0, "sim0+sim1 -> "); (n["INFO"] > 0) != (merge == "1" && r.Since(2, 27)) {
					t.Errorf("%d connections are of both ports", n["INFO"])
				}
			})
		}
	})
}
