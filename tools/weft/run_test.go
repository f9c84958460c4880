package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/simverbs"
)

// tool runs "weft run" in this process, with a built host and a plugin.
func tool(t *testing.T, plugin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	status = execute(t.Context(), append([]string{"run", "--local", "--host", h, "--plugin", plugin}, args...), &out, &errOut)
	return status, out.String(), errOut.String()
}

func good(t *testing.T) string {
	t.Helper()
	path, err := build.Plugin("tools/host/testdata/good.c")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func ours(t *testing.T) string {
	t.Helper()
	path, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// goodNewest is the last of the tables that good.c has, each by hand.
const goodNewest = 12

func TestRunEveryTable(t *testing.T) {
	first, _ := host.FamilyNet.Versions()
	for _, c := range []struct {
		name, plugin string
		last         int
	}{{"good", good(t), goodNewest}, {"weft", ours(t), host.FamilyNet.Newest()}} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := tool(t, c.plugin, "--abi", "all", "--sizes", "4,8,64K", "--iters", "2", "--flush", "--json")
			var doc struct {
				Schema string
				OK     bool
				Tables []struct {
					Table   string
					Results []struct{ Size, Count, Wrong int64 }
					Flushes struct{ Groups, Buffers, Requests int64 }
				}
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || !doc.OK {
				t.Fatalf("status %d (%v)\n%s%s", status, err, out, errOut)
			}
			last := len(doc.Tables) - 1
			if last != c.last-first || doc.Tables[0].Table != host.FamilyNet.Symbol(first) || doc.Tables[last].Table != host.FamilyNet.Symbol(c.last) || len(doc.Tables[last].Results) != 3 {
				t.Fatalf("tables and sizes: %s", out)
			}
			if f := doc.Tables[last].Flushes; f.Groups != 24 || f.Buffers < 1 {
				t.Errorf("flushes: %+v", f)
			}
		})
	}
}

func TestRunFile(t *testing.T) {
	for _, size := range []int{0, 1, 1 << 18, 1<<20 + 7} {
		file := filepath.Join(t.TempDir(), "input")
		text := bytes.Repeat([]byte("warp and weft "), size/14+1)[:size]
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		status, out, errOut := tool(t, ours(t), "--input", file, "--nranks", "4", "--nccl", "2.12")
		if status != 0 || strings.Count(out, " ok\n") != 4 || !strings.Contains(out, "ncclNetPlugin_v5") {
			t.Errorf("%d bytes: status %d\n%s%s", size, status, out, errOut)
		}
	}
}

// A plugin that spoils what it moves is caught, whichever way the data goes.
func TestRunWrong(t *testing.T) {
	spoil, err := build.Plugin("tools/host/testdata/spoil.c")
	if err != nil {
		t.Fatal(err)
	}
	status, out, errOut := tool(t, spoil, "--sizes", "1M", "--iters", "1")
	if status != 1 || !strings.Contains(out, "# wrong: the first at rank") {
		t.Errorf("all-reduce: status %d\n%s%s", status, out, errOut)
	}
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out, errOut = tool(t, spoil, "--input", file); status != 1 || !strings.Contains(out, "WRONG") {
		t.Errorf("broadcast: status %d\n%s%s", status, out, errOut)
	}
}

func TestRunUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--bogus", "unknown flag: --bogus"},
		{"stray", `"stray"`},
		{"--sizes 7", "multiples of 4"},
		{"--sizes 5G", "at least 1 byte and at most 4G"},
		{"--sizes 8x", `"8x" is no size`},
		{"--sizes 8 --min 4", "give one"},
		{"--min 1M --max 1K", "larger than"},
		{"--factor 1", "at least 2"},
		{"--nranks 1", "2 to 4096"},
		{"--rank 1", "needs --join"},
		{"--join nowhere", "host:port"},
		{"--join a:1 --rank 3", "0 to 2"},
		{"--abi 4 --nccl 2.18", "give one"},
		{"--abi 99", fmt.Sprintf("the plugin has [%d %d", goodNewest, goodNewest-1)},
		{"--abi some", "all, old or newest"},
		{"--nccl 9.9", "no such release"},
		{"--input /nonexistent/file", "no such file"},
		{"--timeout 0s", "positive"},
		{"--iters -1", "at least 1"},
		{"--timeout 5", "write 5s"},
		{"--timeout soon", "write 90s"},
		{"-b 1M -e 1K", "larger than"},
		{"-f 1", "at least 2"},
		{"-n -1", "at least 1"},
		{"-w -1", "0 or more"},
		{"-b 8 --sizes 8", "give one"},
		{"--require tcp", "want rdma"},
	} {
		status, _, errOut := tool(t, good(t), strings.Fields(c.args)...)
		if status != 2 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, %q; want 2 and %q", c.args, status, errOut, c.want)
		}
	}
}

// Names joined by + are one device: over RDMA of two simulated cards here.
func TestRunFusedDevice(t *testing.T) {
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	w := simverbs.World{Name: fmt.Sprint("run-fused-", os.Getpid()), Devices: []simverbs.Device{{Name: "sim0", GIDs: []string{"10.1.1.1/24"}}, {Name: "sim1", GIDs: []string{"10.1.2.1/24"}}}}
	defer w.Remove()
	env, err := w.Env(dist, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	status, out, errOut := tool(t, ours(t), "--abi", fmt.Sprintf("9,%d", host.FamilyNet.Newest()), "--sizes", "64,1M", "--iters", "1", "--device", "sim0+1", "-v")
	if status != 0 || strings.Count(out, "device sim0+sim1") != 2 || !strings.Contains(errOut, " over sim0 ") || !strings.Contains(out, "# rank 0 -> 1: RoCE sim0+sim1 -> sim0+sim1, ") {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	for _, c := range []struct{ args, want string }{
		{"--device sim0+sim0", "one device of sim0+sim0: net.makeVDevice: ncclInvalidUsage"},
		{"--device sim0+sim7", `no device "sim7"; the plugin has 2: sim0 sim1`},
		{"--device sim0+sim1 --abi 8", "ncclNetPlugin_v8 cannot make one device of several"},
	} {
		if status, _, errOut := tool(t, ours(t), strings.Fields(c.args)...); status != 1 || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, %q; want %q", c.args, status, errOut, c.want)
		}
	}
}

// A rank that cannot go on ends the others' runs, which say who it was and why.
func TestRunJoinedFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	var status [2]int
	var errOut [2]bytes.Buffer
	var wg sync.WaitGroup
	for rank, device := range []string{"none", ""} {
		args := []string{"run", "--host", h, "--plugin", good(t), "--join", addr, "--nranks", "2", "--token", "t", "--rank", strconv.Itoa(rank), "--device", device, "--sizes", "4"}
		wg.Go(func() {
			status[rank] = execute(t.Context(), args, io.Discard, &errOut[rank])
		})
	}
	wg.Wait()
	for rank := range status { // who joins by hand has a terminal of his own
		said := errOut[rank].String()
		if status[rank] != 1 || !strings.Contains(said, "look at rank 0 on ") || !strings.Contains(said, `, load: no device "none"`) || !strings.Contains(said, "rank 1 ended with that") {
			t.Errorf("rank %d: status %d, %s", rank, status[rank], said)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"4": 4, "64K": 65536, "64k": 65536, "1KiB": 1024, "2MB": 2 << 20, "4G": 4 << 30} {
		if n, err := parseSize(text); err != nil || n != want {
			t.Errorf("%s is %d (%v), want %d", text, n, err, want)
		}
	}
}

// A rank whose sizes are not rank 0's hears that they do not count.
func TestRunJoinedSizesDiffer(t *testing.T) {
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	var status [2]int
	var errOut [2]said
	var wg sync.WaitGroup
	for rank, sizes := range []string{"8,64K", "4"} {
		args := []string{"run", "--host", h, "--plugin", good(t), "--join", addr, "--nranks", "2", "--token", "t", "--rank", strconv.Itoa(rank), "--sizes", sizes}
		wg.Go(func() {
			status[rank] = execute(t.Context(), args, io.Discard, &errOut[rank])
		})
	}
	wg.Wait()
	if status != [2]int{} || !strings.Contains(errOut[1].text(), "rank 0's are used (sizes 8 65536)") || strings.Contains(errOut[0].text(), "are used") {
		t.Errorf("status %d\n%s\n%s", status, errOut[0].text(), errOut[1].text())
	}
}

// nccl-tests' flags mean what they mean there, and NCCL_DEBUG what it means to NCCL.
func TestRunAsNCCLTests(t *testing.T) {
	t.Setenv("NCCL_DEBUG", "INFO")
	status, out, errOut := tool(t, ours(t), strings.Fields("-b 8 -e 128 -f 4 -n 3 -w 2 -c 1 --json")...)
	var doc struct {
		Tables []struct{ Results []struct{ Size, Iters int64 } }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || len(doc.Tables) != 1 {
		t.Fatalf("status %d (%v)\n%s%s", status, err, out, errOut)
	}
	want := []struct{ Size, Iters int64 }{{8, 3}, {32, 3}, {128, 3}}
	if got := doc.Tables[0].Results; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !strings.Contains(errOut, "INFO ") {
		t.Errorf("NCCL_DEBUG=INFO prints %s", errOut)
	}
}
