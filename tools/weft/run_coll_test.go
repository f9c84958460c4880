package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/ranks"
)

// collPlugin is a collNet by hand.
func collPlugin(t *testing.T, source string, flags ...string) string {
	t.Helper()
	path, err := build.Plugin("tools/host/testdata/"+source, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type collDoc struct {
	OK     bool
	Error  string
	Tables []struct {
		Table, Collective string
		Collectives       []ranks.CollResult
	}
}

func TestRunCollEveryTable(t *testing.T) {
	plugin := collPlugin(t, "coll.c")
	first, _ := host.FamilyColl.Versions()
	bus := map[ranks.CollKind]float64{ranks.AllReduce: 4. / 3, ranks.AllGather: 2. / 3, ranks.ReduceScatter: 2. / 3, ranks.Broadcast: 1}
	for _, kind := range ranks.CollKinds {
		tables := "8,9,10,11,12"
		if kind == ranks.AllReduce {
			tables = "all"
		}
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			status, out, errOut := tool(t, plugin, "--coll", string(kind), "--abi", tables, "--type", "int8,double", "--op", "all", "--root", "2",
				"--sizes", "4,64,100K", "--iters", "2", "--piece", "10000", "--window", "3", "--json")
			var doc collDoc
			if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || !doc.OK {
				t.Fatalf("status %d (%v)\n%s%s", status, err, out, errOut)
			}
			results := 2 * 3
			if kind.Reduces() {
				results *= len(host.RedOps)
			}
			if kind == ranks.AllReduce && (doc.Tables[0].Table != host.FamilyColl.Symbol(first) || len(doc.Tables) != goodNewest-first+1) {
				t.Errorf("tables: %s", out)
			}
			for _, table := range doc.Tables {
				if table.Collective != string(kind) || len(table.Collectives) != results {
					t.Fatalf("%s has %d results of %s, want %d", table.Table, len(table.Collectives), table.Collective, results)
				}
				for _, r := range table.Collectives {
					if r.Out.Time <= 0 || r.In.Time <= 0 || r.Iters != 2 || (r.Root == 2) != (kind == ranks.Broadcast) || (r.RedOp == "none") == kind.Reduces() {
						t.Errorf("%s: %+v", table.Table, r)
					}
					if got := r.Out.BusBW / r.Out.AlgBW; r.Size > 0 && math.Abs(got-bus[kind]) > 1e-9 {
						t.Errorf("bus bandwidth is %v of the algorithm's, want %v", got, bus[kind])
					}
				}
			}
		})
	}
}

// The columns are nccl-tests', and their sizes and bandwidths are counted as there.
func TestRunCollColumns(t *testing.T) {
	plugin := collPlugin(t, "coll.c")
	for _, c := range []struct {
		args, row string
	}{
		{"--coll allreduce -b 64 -e 64 -d double -o max", "64 8 double max -1"},
		{"--coll all-gather -b 100 -e 100", "96 6 float none -1"},
		{"--coll reduce-scatter -b 4 -e 4", "0 0 float sum -1"},
		{"--coll broadcast -b 100 -e 100 -r 1 -c 0", "100 25 float none 1"},
	} {
		status, out, errOut := tool(t, plugin, strings.Fields(c.args+" --nranks 4 -n 2")...)
		if status != 0 || strings.Count(out, "#wrong") != 2 {
			t.Fatalf("%s: status %d\n%s%s", c.args, status, out, errOut)
		}
		for _, line := range strings.Split(out, "\n") {
			f := strings.Fields(line)
			if len(f) != 13 || f[0] == "#" {
				continue
			}
			if got := strings.Join(f[:5], " "); got != c.row {
				t.Errorf("%s: %q, want %q", c.args, got, c.row)
			}
			if none := strings.Contains(c.args, "-c 0"); (f[8] == "N/A") != none || (f[12] == "N/A") != none {
				t.Errorf("%s: %s", c.args, line)
			}
		}
	}
}

func TestRunCollRefusals(t *testing.T) {
	declines := collPlugin(t, "declines.c")
	for _, c := range []struct {
		plugin, args, want string
		status             int
	}{
		{declines, "--coll allreduce", "offers no device", 1},
		{ours(t), "--coll allreduce", "set WEFT_COLLNET=1", 1},
		{good(t), "--coll allreduce", "exports no ncclCollNetPlugin_vN", 1},
		{collPlugin(t, "coll.c"), "--coll broadcast --abi 7", "no broadcast: they came with v8", 1},
		{collPlugin(t, "coll.c"), "--coll allreduce --type half", "does not reduce half by sum", 1},
		{collPlugin(t, "coll.c"), "--coll scan", "allreduce, allgather, reducescatter or broadcast", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce --type complex", "some of int8, uint8", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce --op avg", "sum, prod, max or min", 2},
		{collPlugin(t, "coll.c"), "--coll broadcast --root 3", "want 0 to 2", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce --window 33", "1 to 32", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce --piece 3", "--piece", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce --flush", "for the ring", 2},
		{collPlugin(t, "coll.c"), "--type int8", "is for --coll", 2},
		{collPlugin(t, "coll.c"), "--coll allreduce -c -1", "0 or more", 2},
	} {
		if strings.Contains(c.want, "WEFT_COLLNET") {
			t.Setenv("WEFT_COLLNET", "0")
		}
		status, out, errOut := tool(t, c.plugin, strings.Fields(c.args+" --sizes 8 --iters 1")...)
		if status != c.status || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", c.args, status, c.status, c.want, out, errOut)
		}
	}
}

// Of all types, those that the plugin does not reduce are left out, with a word.
func TestRunCollAllTypes(t *testing.T) {
	status, out, errOut := tool(t, collPlugin(t, "coll.c"), strings.Fields("--coll allreduce --type all --op all --sizes 1K --iters 1 --json")...)
	var doc collDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || len(doc.Tables) != 1 {
		t.Fatalf("status %d (%v)\n%s%s", status, err, out, errOut)
	}
	if n := len(doc.Tables[0].Collectives); n != 8*len(host.RedOps) || strings.Count(errOut, "left out") != 4*len(host.RedOps) {
		t.Errorf("%d results\n%s", n, errOut)
	}
}

// A plugin that spoils a result is caught, also if it is near enough and no other rank has it.
func TestRunCollWrong(t *testing.T) {
	for spoils, want := range map[string]string{"1": "the first at rank 1, element 255", "2": "the results of ranks 0 and 1 differ"} {
		status, out, errOut := tool(t, collPlugin(t, "spoil_coll.c", "-DSPOILS="+spoils), "--coll", "allreduce", "--sizes", "1K", "--iters", "1")
		if status != 1 || !strings.Contains(out, want) || !strings.Contains(out, "# WRONG DATA in 2 of") {
			t.Errorf("status %d, want %q\n%s%s", status, want, out, errOut)
		}
	}
}

// Ranks of several commands do what rank 0 was asked for.
func TestRunCollJoined(t *testing.T) {
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	var status [2]int
	var out, errOut [2]said
	var wg sync.WaitGroup
	for rank, kind := range []string{"reducescatter", "allreduce"} {
		args := []string{"run", "--host", h, "--plugin", collPlugin(t, "coll.c"), "--join", addr, "--nranks", "2", "--token", "t", "--rank", fmt.Sprint(rank), "--sizes", "64K", "--coll", kind}
		wg.Go(func() {
			status[rank] = execute(t.Context(), args, &out[rank], &errOut[rank])
		})
	}
	wg.Wait()
	if status != [2]int{} || !strings.Contains(out[0].text(), "# reducescatter") || !strings.Contains(errOut[1].text(), "rank 0's are used") {
		t.Errorf("status %d\n%s%s%s", status, out[0].text(), errOut[0].text(), errOut[1].text())
	}
}

// TestRunCollNet has the library's own collNet perform every collective over TCP: types, operations, and several operations under way.
func TestRunCollNet(t *testing.T) {
	t.Setenv("WEFT_COLLNET", "1")
	for _, c := range []struct {
		args    string
		results int // of each table
	}{
		{"--coll allreduce --abi 3,8,12 --nranks 2 --sizes 4,10K,1M", 3},
		{"--coll allreduce --abi 3,8,12 --nranks 3 --sizes 4,10K,1M --piece 100K --window 4", 3},
		{"--coll allreduce --abi 3,8,12 --nranks 4 --sizes 4,10K,1M", 3},
		{"--coll allreduce --abi 12 --nranks 3 --sizes 1K --type all --op all", 12 * len(host.RedOps)},
		{"--coll reducescatter --abi 8,12 --nranks 3 --sizes 4,10K,1M --type bfloat16,int64 --op sum,min --piece 10000", 3 * 4},
		{"--coll allgather --abi 8,12 --nranks 4 --sizes 4,10K,1M --piece 10000", 3},
		{"--coll broadcast --abi 8,12 --nranks 4 --sizes 4,10K,1M --root 2", 3},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", ""), func(t *testing.T) {
			status, out, errOut := tool(t, ours(t), strings.Fields(c.args+" --iters 2 --json")...)
			var doc collDoc
			if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 || !doc.OK {
				t.Fatalf("status %d (%v)\n%s%s", status, err, out, errOut)
			}
			for _, table := range doc.Tables {
				if len(table.Collectives) != c.results {
					t.Errorf("%s has %d results, want %d", table.Table, len(table.Collectives), c.results)
				}
				for _, r := range table.Collectives {
					once := r.Type == "half" || r.Type == "bfloat16" || strings.HasPrefix(r.Type, "f8")
					if ulp := max(r.Out.ULP, r.In.ULP); once && ulp > 0.501 { // summed in float, rounded once
						t.Errorf("%s: %s of %s is off by %v units of the last place", table.Table, r.RedOp, r.Type, ulp)
					}
				}
			}
		})
	}
}
