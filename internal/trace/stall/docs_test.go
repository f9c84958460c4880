package stall_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/golden"
	"weft/internal/trace/stall"
)

// docs/trace.md shows what is written of a ring in which a rank is stopped.
func TestDocs(t *testing.T) {
	g := newRing(t, 4)
	for r := range 4 {
		g.alive(r, now)
		if r != 2 {
			g.receive(r, 95*second, false)
		}
	}
	g.life[102] = stall.Life{Now: now, Stopped: true}
	var text strings.Builder
	if err := g.report().Text(&text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "..", "docs", "trace.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const place = "<!-- example: stall -->\n```\n"
	before, rest, found := strings.Cut(string(have), place)
	_, after, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("%s has no place for the example", path)
	}
	want := before + place + text.String() + "```\n" + after
	if *golden.Update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		have = []byte(want)
	}
	if d := cmp.Diff(want, string(have)); d != "" {
		t.Errorf("%s is stale; go test ./internal/trace/stall -update (-want +got):\n%s", path, d)
	}
}
