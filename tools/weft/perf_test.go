package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/perf"
	"weft/internal/simverbs"
)

// measured runs "weft perf" in this process, with a built host, quickly.
func measured(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	status = execute(t.Context(), append([]string{"perf"}, append(args, "--host", h)...), &out, &errOut)
	return status, out.String(), errOut.String()
}

// Each test measures what it is for, through tables old and new.
func TestPerf(t *testing.T) {
	quick := []string{"--sizes", "8,100,64K", "--duration", "5ms", "--rounds", "2", "--json", "--local", "--plugin", ours(t)}
	for _, c := range []struct {
		test  perf.Test
		args  []string
		check func(row perf.Row) bool
	}{
		{perf.Bandwidth, quick, func(r perf.Row) bool { return r.Best >= r.Value && r.Times == nil }},
		{perf.BothWays, quick, func(r perf.Row) bool { return r.Best >= r.Value }},
		{perf.CPU, quick, func(r perf.Row) bool { return r.Sender > 0 && r.Receiver > 0 }},
		{perf.Latency, append([]string{"--abi", "3"}, quick...), func(r perf.Row) bool {
			return r.Times.Min > 0 && r.Times.Min <= r.Times.P50 && r.Times.P50 <= r.Times.P99 && r.Times.P99 <= r.Times.Max && r.Times.Deviation >= 0
		}},
		{perf.Connects, []string{"-n", "20", "--rounds", "2", "--json", "--local", "--plugin", ours(t)}, func(r perf.Row) bool { return r.Messages == 20 && r.Times.P50 > 0 }},
		{perf.Bandwidth, append([]string{"--nranks", "4", "--abi", "8"}, quick...), func(r perf.Row) bool { return r.From.Rank == r.To.Rank+2 }},
	} {
		status, out, errOut := measured(t, append([]string{string(c.test)}, c.args...)...)
		var d perf.Document
		if err := json.Unmarshal([]byte(out), &d); err != nil || status != 0 || d.Schema != perf.Schema || len(d.Reports) != 1 || d.Reports[0].Test != c.test || len(d.Reports[0].Rows) == 0 {
			t.Fatalf("%s %q: status %d, %v\n%s%s", c.test, c.args, status, err, out, errOut)
		}
		for _, row := range d.Reports[0].Rows {
			if row.Value <= 0 || row.Rate <= 0 || row.Wrong > 0 || len(row.Rounds) != 2 || !c.check(row) {
				t.Errorf("%s: %+v", c.test, row)
			}
		}
	}
}

// Bytes that come wrong are told, and so is the library that brings them.
func TestPerfWrong(t *testing.T) {
	spoil, err := build.Plugin("tools/host/testdata/spoil.c")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"bw", "--local", "--size", "64K", "-n", "16", "--rounds", "2", "--plugin", good(t), "--vs", spoil}
	status, out, errOut := measured(t, args...)
	if status != 1 || !strings.Contains(out, "wrong: 5 messages of 65536 bytes from") || !strings.Contains(out, "through "+filepath.Base(spoil)) || strings.Contains(out, "through "+filepath.Base(good(t))) {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	if status, out, errOut = measured(t, append(args, "--no-check")...); status != 0 {
		t.Errorf("not looked at: status %d\n%s%s", status, out, errOut)
	}
}

// A matrix of ranks gives tables, a page and values for other programs.
func TestPerfMatrix(t *testing.T) {
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "m.html"), filepath.Join(dir, "m.svg")
	args := []string{"matrix", "--local", "--nranks", "3", "--size", "64K", "--duration", "5ms", "--rounds", "1", "--plugin", ours(t)}
	status, out, errOut := measured(t, append(args, "--html", page)...)
	if status != 0 || !strings.Contains(out, "# 64 KiB, MB/sec") || !strings.Contains(out, "# 8 B, usec") {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	status, out, errOut = measured(t, append(args, "--html", picture, "--csv")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if status != 0 || err != nil || len(rows) != 1+2*6 {
		t.Errorf("status %d, %d rows of CSV, %v\n%s", status, len(rows), err, errOut)
	}
	for _, file := range []string{page, picture} {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(b, []byte("<svg")) {
			t.Errorf("%s: %v, %.200s", file, err, b)
		}
	}
}

// Between machines that are cabled directly, not every two ports have a path: what others carried is no figure of theirs.
func TestPerfMatrixOfCables(t *testing.T) {
	env := worldOf(t, "cables",
		simverbs.Device{Name: "sim0", Node: "node0", GIDs: []string{"10.1.1.1/24"}}, simverbs.Device{Name: "sim1", Node: "node0", GIDs: []string{"10.2.1.1/24"}},
		simverbs.Device{Name: "sim2", Node: "node1", GIDs: []string{"10.2.1.2/24"}}, simverbs.Device{Name: "sim3", Node: "node1", GIDs: []string{"10.1.1.2/24"}})
	status, out := two(t, env, "perf", "matrix", "--ports", "all", "--size", "64K", "--duration", "5ms", "--rounds", "1", "--json")
	var d perf.Document
	if i := strings.Index(out, "{\n"); i < 0 || json.Unmarshal([]byte(out[i:]), &d) != nil || status != 0 {
		t.Fatalf("status %d\n%s", status, out)
	}
	for _, r := range d.Reports {
		for _, row := range r.Rows {
			cable := row.From.Device != row.To.Device // they are crossed
			if row.Others == cable || !strings.HasPrefix(row.Link, "RoCE ") {
				t.Errorf("%+v: by others: %v, over %q", row.Pair, row.Others, row.Link)
			}
		}
		if len(r.Rows) != 8 {
			t.Errorf("%d rows", len(r.Rows))
		}
	}
}

// Two commands meet as perftest's do: one waits, the other names it and sends.
func TestPerfServes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var status [2]int
	var out, errOut [2]string
	var wg sync.WaitGroup
	for i, args := range [][]string{{"--serve", addr, "--sizes", "8,64K"}, {addr, "--size", "1M"}} {
		wg.Go(func() {
			status[i], out[i], errOut[i] = measured(t, append([]string{"bw", "--duration", "5ms", "--rounds", "1", "--token", "t", "--plugin", ours(t)}, args...)...)
		})
	}
	wg.Wait()
	if status != [2]int{} || !strings.Contains(out[0], "   65536 ") || out[1] != "" {
		t.Errorf("status %d\n%s\n%s\n%s\n%s", status, out[0], errOut[0], out[1], errOut[1])
	}
}

// What fails is told with the rank and the cause, and ends; what cannot be asked for is refused.
func TestPerfRefusals(t *testing.T) {
	report := filepath.Join(t.TempDir(), "old.json")
	status, out, errOut := measured(t, "bw", "--local", "--size", "8", "-n", "8", "--rounds", "1", "--json", "--plugin", ours(t))
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errOut)
	}
	if err := os.WriteFile(report, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		err    string
	}{
		{"bw --size 0", 2, "at least 1 byte and at most 4G"},
		{"bw --size 8 --all", 2, "give one"},
		{"bw --nranks 3", 2, "3 ranks: half of them"},
		{"bw --tx-depth 0", 2, "want 1 to 256"},
		{"bw --serve --nranks 2", 2, "--nranks is for ranks of a job"},
		{"bw host1 host2", 2, "accepts at most 1 arg"},
		{"bw --vs /nowhere/x.so", 2, "--vs /nowhere/x.so: no such file"},
		{"bw --json --csv", 2, "give one"},
		{"bw --compare /nowhere", 2, "no such file"},
		{"bw host1 --json", 2, "--json is for the process that waits"},
		{"bw --hosts a,b,c", 2, "3 hosts: half of them"},
		{"bw --hosts a,b --plugin lib/x.so", 2, "give its whole path"},
		{"lat --size 8 -n 8 --rounds 1 --compare " + report, 2, "it is of bw, and this is lat"},
		{"lat --size 8 --vs libc.so.6", 1, "libc.so.6 is no network plugin"},
		{"lat --size 8 --device none", 1, `no device "none"`},
		{"lat --size 8 --abi 99", 1, "--abi 99"},
		{"conns -n 9000", 1, "ask for 6144"},
		{"matrix --ports some", 2, "want same or all"},
		{"matrix --html x.pdf", 2, "end it in .html"},
		{"matrix --device 0", 1, "a matrix is of all"},
	} {
		args := strings.Fields(c.args + " --local --plugin " + ours(t))
		switch {
		case strings.Contains(c.args, "--plugin"):
			args = strings.Fields(c.args)
		case strings.Contains(c.args, "--serve") || strings.Contains(c.args, "host"):
			args = strings.Fields(c.args + " --plugin " + ours(t))
		}
		if status, out, errOut := measured(t, args...); status != c.status || !strings.Contains(errOut, c.err) {
			t.Errorf("%s: status %d, want %d with %q\n%s%s", c.args, status, c.status, c.err, out, errOut)
		}
	}
}

// A report is compared with an older one, whose rates are so far from the new ones that no noise decides.
func TestPerfCompares(t *testing.T) {
	status, out, errOut := measured(t, "bw", "--local", "--size", "8", "-n", "8", "--rounds", "1", "--json", "--plugin", ours(t))
	if status != 0 {
		t.Fatalf("status %d\n%s", status, errOut)
	}
	for _, c := range []struct {
		times  float64 // of the rates that were measured, in the old report
		status int
		worse  bool
	}{
		{1e-9, 0, false},
		{1e9, 1, true},
	} {
		var d perf.Document
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		for i := range d.Reports[0].Rows {
			d.Reports[0].Rows[i].Value *= c.times
		}
		old, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		report := filepath.Join(t.TempDir(), "old.json")
		if err := os.WriteFile(report, old, 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, errOut := measured(t, "bw", "--local", "--size", "8", "-n", "8", "--rounds", "1", "--plugin", ours(t), "--compare", report)
		if status != c.status || !strings.Contains(out, "compared: ") || strings.Contains(out, "worse: ") != c.worse {
			t.Errorf("rates times %g: status %d, want %d\n%s%s", c.times, status, c.status, out, errOut)
		}
	}
}
