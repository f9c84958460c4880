package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

// traced is a folder with what the ranks of a job have recorded.
func traced(t *testing.T, j rectest.Job) string {
	t.Helper()
	dir := t.TempDir()
	for i, f := range j.Files() {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("weft-n-%d-00.rec", i)), f.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// waiting is a folder with a process that waits for a message.
func waiting(t *testing.T) string {
	t.Helper()
	f := rectest.New(4, 7, "hangs", 9, 1000, 1000)
	th := f.Thread(1, "python")
	th.Link(2000, 0x20, false, 1, 0x77, "eth0", "previous", 0)
	th.Message(1_000_000_000, 0x20, false, 1, 8, 0)
	th.End()
	other := f.Thread(2, "other")
	other.MessageEnd(10_000_000_000, 5, 1, 8, 0)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weft-hangs-7-00.rec"), f.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTrace(t *testing.T) {
	j := rectest.Job{Ranks: 8, PerMachine: 4, Iterations: 4, Version: 6, Skew: 90_000_000}
	dir := traced(t, j)
	j.Late = map[int]uint64{5: 60_000}
	late := traced(t, j)
	out := filepath.Join(t.TempDir(), "job")
	broken := t.TempDir()
	for name, text := range map[string]string{"a.rec": "nonsense", "weft.rec": ""} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one := filepath.Join(dir, "weft-n-3-00.rec")
	cut := filepath.Join(t.TempDir(), "cut.rec") // of two chunks
	if b, err := os.ReadFile(one); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(cut, b[:format.ChunksAt+format.ChunkBytes], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		out    []string
		err    string
	}{
		{"", 2, nil, "usage: weft trace"},
		{"-h", 0, []string{"usage: weft trace", "report"}, ""},
		{"dance", 2, nil, `there is no command "dance"`},
		{"show", 2, nil, "want files"},
		{"show -h", 0, []string{"usage: weft trace show", "-json"}, ""},
		{"show --what", 2, nil, "weft trace show -h explains"},
		{"show " + dir + "/none", 2, nil, "no such file"},
		{"show " + broken, 2, nil, "not a file of weft's recorder"},
		{"show " + broken + "/a.rec " + one, 1, []string{"node0:103"}, "not a file of weft's recorder"},
		{"show " + one, 0, []string{"process       node0:103, test", "rank 3 of 8 on 2 nodes, 0xc0ffee world, table v6", "sends to node1 over mlx5_0, RDMA", "lost          nothing", "Coll"}, ""},
		{"show --json " + one, 0, []string{`"host":"node0"`, `{"type":"Coll","count":4,"open":0,"launch":0,"captured":0}`}, ""},
		{"show " + cut, 1, []string{"lost          1 chunk unread", "cut short"}, ""},
		{"report " + cut, 1, []string{"1 chunk unread"}, ""},
		{"stall " + cut, 1, []string{"note: node0:103: lost 1 chunk unread"}, ""},
		{"merge " + cut + " -o " + out + ".cut.json", 1, []string{"node0:103: lost 1 chunk unread"}, ""},
		{"inspector " + cut + " -o " + out + ".cut", 1, []string{"; lost: 1 chunk unread"}, ""},
		{"stall --least 30 " + dir, 2, nil, "write 30s"},
		{"stall", 2, nil, "want files"},
		{"stall -h", 0, []string{"usage: weft trace stall", "--least"}, ""},
		{"stall --least -1s " + dir, 2, nil, "--least -1s is negative"},
		{"stall " + broken, 2, nil, "not a file of weft's recorder"},
		{"stall " + dir, 0, []string{"nobody has waited for 2s or longer", "note: no process of node0 is known to run"}, ""},
		{"stall " + waiting(t), 1, []string{"cause: previous (no file of it was read), for which one process waits", "hangs:7", "send", "9s", "TCP, eth0 to ?"}, ""},
		{"stall --json " + waiting(t), 1, []string{`"kind": "process"`, `"ns": 9000000000`}, ""},
		{"merge " + dir, 2, nil, "-o is missing"},
		{"merge " + dir + " -o job.svg", 2, nil, "end it in .pftrace"},
		{"merge " + dir + " -o " + out + "/none/x.json", 2, nil, "no such file"},
		{"merge " + dir + " -o " + out + ".pftrace", 0, []string{"job.pftrace: 8 processes, 320 events, 64 messages, 32 arrows", "clock of node1: aligned by messages both ways, wrong by at most 15µs"}, ""},
		{"merge " + dir + " -o " + out + ".json", 0, []string{"job.json: 8 processes"}, ""},
		{"merge -h", 0, []string{"usage: weft trace merge"}, ""},
		{"report " + dir, 0, []string{"no rank and no link stands out", "AllReduce  1 MiB  RING SIMPLE"}, ""},
		{"report " + late, 1, []string{"straggler: rank 5 of world (node1:105)"}, ""},
		{"report --last 1h " + late, 1, []string{"straggler: rank 5 of world (node1:105)"}, ""},
		{"report --last 1ns " + late, 0, []string{"no rank and no link stands out"}, ""},
		{"report --last -1s " + late, 2, nil, "negative"},
		{"report --json " + late, 1, []string{`"kind": "straggler"`}, ""},
		{"report " + broken, 2, nil, "not a file"},
		{"report --html " + out + ".html " + late, 1, []string{"straggler: rank 5 of world"}, ""},
		{"report --json --html " + out + ".html " + dir, 0, []string{`"findings": []`}, ""},
		{"report --html " + one + " " + dir, 2, nil, "end it in .html"},
		{"report --html " + out + "/none/x.html " + dir, 2, nil, "no such file"},
		{"report --html " + out + ".broken.html " + broken, 2, nil, "not a file"},
		{"stall --ras=nobody " + dir, 2, nil, "no HOST:PORT"},
		{"stall --ras=false " + dir, 0, []string{"nobody has waited"}, ""},
		{"stall --ras=127.0.0.1:1 " + dir, 1, []string{"nobody has waited", "NCCL's RAS has not answered: nobody listens at 127.0.0.1:1"}, ""},
		{"report --ras=127.0.0.1:1 " + dir, 1, []string{"no rank and no link stands out\nNCCL's RAS has not answered"}, ""},
		{"report --json --ras=127.0.0.1:1 " + dir, 1, []string{`"verdict": "has not answered"`}, ""},
		{"inspector " + dir, 2, nil, "-o is missing"},
		{"inspector -h", 0, []string{"usage: weft trace inspector", "--min-size"}, ""},
		{"inspector " + broken + " -o " + out + ".inspector", 2, nil, "not a file"},
		{"inspector " + dir + " -o " + out + "/none/x", 2, nil, "no such file"},
		{"inspector " + dir + " -o " + out + ".inspector", 0, []string{"job.inspector/node0-pid103.log: 4 operations\n"}, ""},
		{"inspector --prometheus " + dir + " -o " + out + ".inspector", 0, []string{"nccl_inspector_metrics_node1-pid107.prom: 4 operations\n"}, ""},
		{"inspector --min-size 2000000 " + dir + " -o " + out + ".inspector", 0, []string{"0 operations; left out: 4 with fewer bytes"}, ""},
		{"report -h", 0, []string{"usage: weft trace report"}, ""},
	} {
		var stdout, stderr bytes.Buffer
		if status := execute(t.Context(), strings.Fields("trace "+c.args), &stdout, &stderr); status != c.status {
			t.Errorf("%q: status %d, want %d", c.args, status, c.status)
		}
		for _, want := range c.out {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%q does not say %q:\n%s", c.args, want, stdout.String())
			}
		}
		if !strings.Contains(stderr.String(), c.err) || c.err == "" && stderr.Len() > 0 {
			t.Errorf("%q on stderr: %q, want %q", c.args, stderr.String(), c.err)
		}
	}
	b, err := os.ReadFile(out + ".json")
	if err != nil || !json.Valid(b) {
		t.Errorf("%v, JSON %t", err, json.Valid(b))
	}
	for _, ext := range []string{".pftrace", ".html"} {
		if st, err := os.Stat(out + ext); err != nil || st.Mode().Perm() != 0o600 || st.Size() == 0 {
			t.Errorf("%s: %v, %v", ext, st, err)
		}
	}
	// The second report took the place of the first, as merge does it.
	if b, err := os.ReadFile(out + ".html"); err != nil || !bytes.Contains(b, []byte("<h1>Nothing stands out</h1>")) {
		t.Errorf("%v, %.2000s", err, b)
	}
	if _, err := os.Stat(out + ".broken.html"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a page of no file: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// A file that is copied is told of once.
func TestTraceOfCopies(t *testing.T) {
	dir := traced(t, rectest.Job{Ranks: 1, PerMachine: 1, Iterations: 1, Version: 6})
	b, err := os.ReadFile(filepath.Join(dir, "weft-n-0-00.rec"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "copy.rec"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if status := execute(t.Context(), []string{"trace", "show", dir}, &stdout, &stderr); status != 1 || !strings.Contains(stderr.String(), "is of the same process as") {
		t.Errorf("status %d, %q", status, stderr.String())
	}
}
