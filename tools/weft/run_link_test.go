package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// world makes two simulated cards, one on each of two nodes; what a process of a node needs is returned.
func world(t *testing.T, name string, gids ...string) func(node int) []string {
	t.Helper()
	var devices []simverbs.Device
	for i, gid := range gids {
		devices = append(devices, simverbs.Device{Name: fmt.Sprint("sim", i), Node: fmt.Sprint("node", i), GIDs: []string{gid}})
	}
	return worldOf(t, name, devices...)
}

// worldOf makes these simulated cards.
func worldOf(t *testing.T, name string, devices ...simverbs.Device) func(node int) []string {
	t.Helper()
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	w := simverbs.World{Name: fmt.Sprint(name, os.Getpid()), Devices: devices}
	t.Cleanup(func() { w.Remove() })
	return func(node int) []string {
		env, err := w.Env(dist, fmt.Sprint("node", node))
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
}

// job runs a rank of two each with its node's environment, as torchrun starts them, and returns what rank 0 leaves with and writes.
func job(t *testing.T, env func(node int) []string, args ...string) (status int, text string) {
	t.Helper()
	return two(t, env, append([]string{"run", "--sizes", "8", "--iters", "2"}, args...)...)
}

// two runs a command as two ranks, each with its node's environment.
func two(t *testing.T, env func(node int) []string, args ...string) (status int, text string) {
	t.Helper()
	weft, h := programs(t)
	port := freePort(t)
	var cmds [2]*exec.Cmd
	var out said
	for rank := range cmds {
		c := exec.Command(weft, append(args, "--host", h, "--plugin", ours(t))...)
		c.Env = append(os.Environ(), "RANK="+fmt.Sprint(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", fmt.Sprint("MASTER_PORT=", port))
		c.Env = append(c.Env, env(rank)...)
		if rank == 0 {
			c.Stdout, c.Stderr = &out, &out
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		cmds[rank] = c
	}
	for _, c := range cmds {
		late := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
		_ = c.Wait() // its status is the caller's
		late.Stop()
	}
	return cmds[0].ProcessState.ExitCode(), out.text()
}

func wantLine(t *testing.T, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)^# ` + pattern + `$`).MatchString(text) {
		t.Errorf("no line %q in:\n%s", pattern, text)
	}
}

// What the links went over is read from the library's log: a line of it that is worded otherwise must fail here.
func TestRunTellsTheLinks(t *testing.T) {
	t.Run("RoCE", func(t *testing.T) {
		status, text := job(t, world(t, "links-roce", "10.1.1.1/24", "10.1.1.2/24"), "--require", "rdma")
		wantLine(t, text, `rank 0 -> 1: RoCE sim0 -> sim1, 1 lane`)
		wantLine(t, text, `rank 1 -> 0: RoCE sim1 -> sim0, 1 lane`)
		wantLine(t, text, `all data right: .*`)
		if status != 0 {
			t.Errorf("status %d", status)
		}
	})
	apart := world(t, "links-apart", "10.1.1.1/24", "10.2.2.2/24")
	t.Run("TCP between RDMA devices", func(t *testing.T) {
		status, text := job(t, apart)
		wantLine(t, text, `rank 0 -> 1: TCP sim0 -> sim1, 1 stream, because sim\d to its device 0 .*`)
		wantLine(t, text, `rank 1 -> 0: TCP sim1 -> sim0, 1 stream, because sim\d to its device 0 .*`)
		if regexp.MustCompile(`(?m)^# rank \d -> .*INFO lines`).MatchString(text) {
			t.Errorf("what the log advises is not the cause:\n%s", text)
		}
		if status != 0 {
			t.Errorf("status %d", status)
		}
	})
	t.Run("RDMA required, and few lines wanted", func(t *testing.T) {
		t.Setenv("NCCL_DEBUG", "WARN")
		status, text := job(t, world(t, "links-quiet", "10.1.1.1/24", "10.1.1.2/24"), "--require", "rdma")
		if status != 0 || !strings.Contains(text, "RoCE sim0") {
			t.Errorf("status %d\n%s", status, text)
		}
	})
	t.Run("RDMA required", func(t *testing.T) {
		if status, text := job(t, apart, "--require", "rdma"); status != 1 || !strings.Contains(text, "WEFT_REQUIRE=rdma") || strings.Contains(text, "all data right") {
			t.Errorf("status %d\n%s", status, text)
		}
	})
	t.Run("no RDMA device", func(t *testing.T) {
		t.Setenv("NCCL_IB_DISABLE", "1")
		status, out, errOut := tool(t, ours(t), "--sizes", "8", "--iters", "2", "--abi", fmt.Sprintf("9,%d", host.FamilyNet.Newest()))
		if status != 0 || strings.Count(out, "# rank ") != 3 {
			t.Errorf("status %d; want every link once\n%s%s", status, out, errOut)
		}
		wantLine(t, out, `rank 2 -> 0: TCP \S+ -> \S+, \d+ streams?, because .*NCCL_IB_DISABLE.*`)
	})
	t.Run("another plugin", func(t *testing.T) {
		status, out, errOut := tool(t, good(t), "--sizes", "8", "--iters", "2")
		wantLine(t, out, `rank 0 -> 1: not known: .*`)
		if status != 0 {
			t.Errorf("status %d\n%s", status, errOut)
		}
		if status, _, errOut = tool(t, good(t), "--sizes", "8", "--iters", "2", "--require", "rdma"); status != 1 || !strings.Contains(errOut, "RDMA is required, and the link to rank 1 is: not known") {
			t.Errorf("--require rdma: status %d, %s", status, errOut)
		}
	})
}
