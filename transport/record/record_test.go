package record

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/record/format"
)

// A process has one file, however many ask for it, and what it says is in that.
func TestOpen(t *testing.T) {
	c := Config{Dir: t.TempDir(), Bytes: 2 << 20, Build: "b", Log: report.Discard{}}
	first, err := Open(c)
	if err != nil || !On() {
		t.Fatal(err, On())
	}
	second, err := Open(Config{Dir: "/nowhere", Log: report.Discard{}})
	if err != nil || second != first {
		t.Errorf("a second file %q, %v", second, err)
	}
	if a, b := Name("one text"), Name("one text"); a == 0 || a != b || Name("") != 0 || Name(strings.Repeat("x", 500)) == 0 {
		t.Errorf("names %d and %d", a, b)
	}
	Keep(format.Record{Kind: format.Comm, Comm: 7, A: 1}, false)
	Say(strings.Repeat("a", format.SaidBytes) + "bc")
	Say(strings.Repeat("d", 1<<20)) // a text has an end
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	chunks := binary.LittleEndian.Uint32(text[format.OffChunks:])
	if string(text[:8]) != format.Magic || len(text) != format.ChunksAt+int(chunks)*format.ChunkBytes || len(text) > 2<<20 {
		t.Errorf("%d bytes, %d chunks, begin %q", len(text), chunks, text[:8])
	}
	if r := text[format.ChunksAt+format.RecordBytes:]; r[4] != byte(format.Comm) || binary.LittleEndian.Uint16(r[6:]) != 7 {
		t.Errorf("the first record is % x", r[:64])
	}
	for what, want := range map[string]int{strings.Repeat("a", format.SaidBytes): 1, "bc\x00": 1, strings.Repeat("d", format.SaidBytes): format.SaidMost} {
		if n := strings.Count(string(text), what); n != want {
			t.Errorf("%.10q is there %d times, want %d", what, n, want)
		}
	}
}
