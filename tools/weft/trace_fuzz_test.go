package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

// spoil changes so many bytes where a file has something: of its header, behind what tells which file it is, of texts and of
// the first chunks.
func spoil(b []byte, n int, r *rand.Rand) {
	for range n {
		at := format.OffPID + r.IntN(format.OffAlive+8-format.OffPID)
		switch r.IntN(8) {
		case 0:
			at = format.CellsAt + r.IntN(32*format.CellBytes)
		case 1, 2, 3, 4, 5, 6:
			at = format.ChunksAt + r.IntN(2)*format.ChunkBytes + r.IntN(96*format.RecordBytes)
		}
		b[at] = []byte{0, 1, 0x80, 0xff, byte(r.Uint32())}[r.IntN(5)]
	}
}

// FuzzTrace spoils the files of a job: each command says what it can, in time, and its JSON is some.
func FuzzTrace(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed, uint16(1)<<(2*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		r, dir, out := rand.New(rand.NewPCG(seed, 1)), t.TempDir(), t.TempDir()
		for i, file := range (rectest.Job{Ranks: 3, PerMachine: 2, Iterations: 3, Version: 6, Skew: 90_000_000}).Files() {
			spoil(file.Bytes, int(n), r)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("weft-n-%d-00.rec", i)), file.Bytes, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []string{
			"show", "report", "report --json --html " + out + "/page.html", "report --last 1ms", "stall", "stall --json",
			"merge -o " + out + "/job.json", "merge -o " + out + "/job.pftrace",
			"inspector --any-timing --verbose --min-size 0 -o " + out + "/inspector", "inspector --any-timing --prometheus -o " + out + "/inspector",
		} {
			var stdout, stderr bytes.Buffer
			if status := execute(t.Context(), append(strings.Fields("trace "+c), dir), &stdout, &stderr); status > 1 {
				t.Errorf("%q: status %d: %s", c, status, stderr.String())
			}
			if strings.Contains(c, "--json") && !json.Valid(stdout.Bytes()) {
				t.Errorf("%q: no JSON:\n%.2000s", c, stdout.String())
			}
		}
		if b, err := os.ReadFile(out + "/job.json"); err != nil || !json.Valid(b) {
			t.Errorf("the trace is no JSON: %v", err)
		}
	})
}
