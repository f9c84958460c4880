package trace_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/trace"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

const boot = 0xb0

func read(t *testing.T, b []byte) *trace.File {
	t.Helper()
	f, err := trace.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rich has a record of every kind, from two threads.
func rich() *rectest.File {
	f := rectest.New(3, 77, "node1", boot, 1000, 5000)
	a, b := f.Thread(10, "python"), f.Thread(11, "proxy")
	a.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 1001, Rank: 3, A: 0xabc, B: f.Name("world") | 4<<32, C: 2 | 6<<32})
	at := a.Put(format.Record{Kind: format.Start, Type: format.Coll, Comm: 1, Time: 1010, Rank: 3, A: 7, B: 1024, More: [7]uint64{f.Name("AllReduce") | f.Name("ncclFloat32")<<32, 1}})
	id := (uint64(format.Coll)+1)<<format.TypeShift | at
	a.Put(format.Record{Kind: format.State, Type: format.Coll, Time: 1015, ID: id, Flags: 19})
	a.Put(format.Record{Kind: format.Stop, Type: format.Coll, Time: 1020, ID: id})
	b.Put(format.Record{Kind: format.Link, Time: 1030, ID: 0x55, Flags: 1 | 2<<8, A: 0x1234, B: f.Name("mlx5_0") | f.Name("node2")<<32})
	m := b.Put(format.Record{Kind: format.Message, Time: 1040, Parent: 0x55, Flags: 1 | 1<<8, B: 4096})
	b.Put(format.Record{Kind: format.MessageEnd, Time: 1050, ID: m, B: 4096})
	a.Put(format.Record{Kind: format.CommEnd, Comm: 1, Time: 1060})
	return f
}

func TestRead(t *testing.T) {
	f := read(t, rich().Bytes)
	if len(f.Notes) > 0 || f.Loss != (trace.Loss{}) {
		t.Errorf("a whole file has notes %q and losses %+v", f.Notes, f.Loss)
	}
	h := f.Header
	if h.PID != 77 || h.Host != "node1" || h.Build != "test" || h.Mono != 1000 || h.Real != 5000 || h.Boot[15] != boot || h.Turns != 2 {
		t.Errorf("header %+v", h)
	}
	if len(f.Threads) != 2 || f.Threads[0].Name != "python" || f.Threads[1].TID != 11 || f.Records() != 8 {
		t.Fatalf("%d threads, %d records", len(f.Threads), f.Records())
	}
	c := f.Threads[0].Records[1]
	if c.ID != (format.Coll+1)<<format.TypeShift|c.At || format.IDType(c.ID) != format.Coll || c.Comm != 1 || c.Rank != 3 || f.Text(uint32(c.More[0])) != "AllReduce" || c.More[1] != 1 {
		t.Errorf("the collective is %+v", c)
	}
	if f.Text(0) != "" || f.Text(4000) != "" {
		t.Error("a text that is not there has a value")
	}
}

// A busy thread takes chunks again; an idle one keeps its own.
func TestWrapAround(t *testing.T) {
	w := rectest.New(3, 1, "h", boot, 0, 0)
	idle, busy := w.Thread(1, "idle"), w.Thread(2, "busy")
	idle.Put(format.Record{Kind: format.Stop, Time: 5})
	for i := range 5000 {
		busy.Put(format.Record{Kind: format.Stop, Time: uint64(10 + i), ID: uint64(i)})
	}
	f := read(t, w.Bytes)
	if f.Loss.Overwritten != 3*(format.ChunkRecords-1) || f.Loss.Torn != 0 || !f.Loss.Any() {
		t.Errorf("losses %+v", f.Loss)
	}
	if len(f.Threads[0].Records) != 1 {
		t.Error("the idle thread's record is gone")
	}
	kept := f.Threads[1].Records
	for i := 1; i < len(kept); i++ {
		if kept[i].ID != kept[i-1].ID+1 {
			t.Fatalf("record %d comes after %d", kept[i].ID, kept[i-1].ID)
		}
	}
	if kept[len(kept)-1].ID != 4999 || len(kept) != 5000-3*(format.ChunkRecords-1) {
		t.Errorf("%d are kept, up to %d", len(kept), kept[len(kept)-1].ID)
	}
}

func TestEveryChunkInUse(t *testing.T) {
	w := rectest.New(2, 1, "h", boot, 0, 0)
	for i := range 3 {
		w.Thread(uint32(i+1), "t").Put(format.Record{Kind: format.Stop})
	}
	dead := w.Thread(9, "late")
	dead.Put(format.Record{Kind: format.Stop})
	if f := read(t, w.Bytes); f.Loss.Refused != 2 || f.Records() != 2 {
		t.Errorf("%d records, losses %+v", f.Records(), f.Loss)
	}
}

// A chunk of a thread that ended goes to another, and both are told apart.
func TestThreadsThatEnd(t *testing.T) {
	w := rectest.New(1, 1, "h", boot, 0, 0)
	first := w.Thread(1, "first")
	first.Put(format.Record{Kind: format.Stop, ID: 1})
	first.End()
	second := w.Thread(2, "second")
	second.Put(format.Record{Kind: format.Stop, ID: 2})
	f := read(t, w.Bytes)
	if len(f.Threads) != 1 || f.Threads[0].Name != "second" || len(f.Threads[0].Records) != 1 || f.Loss.Overwritten != format.ChunkRecords-1 {
		t.Errorf("%+v, losses %+v", f.Threads, f.Loss)
	}
}

// The last place of a chunk stays empty where two are needed: nothing is lost there.
func TestTorn(t *testing.T) {
	w := rectest.New(2, 1, "h", boot, 0, 0)
	a := w.Thread(1, "t")
	for range format.ChunkRecords - 2 {
		a.Put(format.Record{Kind: format.Stop})
	}
	a.Put(format.Record{Kind: format.Start, More: [7]uint64{1}})
	if f := read(t, w.Bytes); f.Loss.Torn != 0 || f.Records() != format.ChunkRecords-1 {
		t.Errorf("%d records, losses %+v", f.Records(), f.Loss)
	}
	a.Skip()
	a.Put(format.Record{Kind: format.Stop})
	a.Skip() // the last one of a thread that was killed cannot be told from none
	if f := read(t, w.Bytes); f.Loss.Torn != 1 || f.Records() != format.ChunkRecords {
		t.Errorf("%d records, losses %+v", f.Records(), f.Loss)
	}
}

func TestDamage(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	cut := func(to int) func([]byte) []byte { return func(b []byte) []byte { return b[:to] } }
	first := format.ChunksAt
	for _, c := range []struct {
		what    string
		change  func([]byte) []byte
		err     string
		note    string
		records int
	}{
		{"nothing", cut(0), "not a file of weft's recorder", "", 0},
		{"half a header", cut(2000), "a header has 4096", "", 0},
		{"another file", func(b []byte) []byte { copy(b, "\x7fELF"); return b }, "it begins", "", 0},
		{"a later version", put32(format.OffVersion, 2), "is of version 2", "", 0},
		{"no version", put32(format.OffVersion, 0), "is of version 0", "", 0},
		{"no texts", cut(format.CellsAt + 100), "", "texts: 100 of", 0},
		{"no second chunk", cut(first + format.ChunkBytes + 99), "", "the header has 3 chunks, the file 1", 5},
		{"more chunks than there are", put32(format.OffChunks, 1<<31), "", "the file 3", 8},
		{"other chunks", put32(format.OffChunks, 1), "", "", 5},
		{"chunks elsewhere", put32(format.OffChunksAt, 64), "", "chunks at byte 64", 8},
		{"texts elsewhere", put32(format.OffCellsAt, 64), "", "texts at byte 64", 8},
		{"a turn of another place", put32(first+format.OffTurn, 2), "", "turn that is not of their place", 3},
		{"a turn that no position can have", put32(first+format.OffTurn+4, 1<<30), "", "turn that is not of their place", 3},
		{"an unknown kind", func(b []byte) []byte { b[first+64+4] = 77; return b }, "", "1 records are of a kind", 7},
		{"a time before the file's", put32(first+64+8, 7), "", "1 records have a time at which", 7},
		{"a time years later", put32(first+64+12, 1<<30), "", "1 records have a time at which", 7},
		{"another clock", put32(format.OffMono+4, 1<<30), "", "is not that of the records", 8},
		{"a text of no length", put32(format.CellsAt+format.OffCellLength, 1<<30), "", "1 texts have a length", 8},
	} {
		b := c.change(rich().Bytes)
		f, err := trace.Read(bytes.NewReader(b), int64(len(b)))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || f != nil {
				t.Errorf("%s: %v, want %q", c.what, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.what, notes, c.note)
		}
		if f.Records() != c.records {
			t.Errorf("%s: %d records, want %d", c.what, f.Records(), c.records)
		}
	}
}

// What a file that was cut had is lost, as far as its process had come.
func TestCutIsLost(t *testing.T) {
	for _, c := range []struct {
		chunks int // that are left of 3, of which 2 were taken
		lost   string
	}{{3, "nothing"}, {2, "nothing"}, {1, "1 chunk unread"}, {0, "2 chunks unread"}} {
		if f := read(t, rich().Bytes[:format.ChunksAt+c.chunks*format.ChunkBytes]); f.Loss.String() != c.lost {
			t.Errorf("%d chunks of 3: lost %q, want %q", c.chunks, f.Loss, c.lost)
		}
	}
}

func TestWhatIsPrinted(t *testing.T) {
	w := rectest.New(1, 1, "a\x1b[2Jb\xff", boot, 0, 0)
	w.Name("evil\x1b]0;")
	if f := read(t, w.Bytes); f.Header.Host != "a?[2Jb?" || f.Text(1) != "evil?]0;" {
		t.Errorf("%q, %q", f.Header.Host, f.Text(1))
	}
}

// live changes a chunk after it was read, as a thread that writes does.
type live struct {
	io.ReaderAt
	b     []byte
	turns int // how often it is still overwritten
}

func (l *live) ReadAt(p []byte, at int64) (int, error) {
	n, err := l.ReaderAt.ReadAt(p, at)
	if len(p) == format.ChunkBytes && at == format.ChunksAt && l.turns > 0 {
		l.turns--
		binary.LittleEndian.PutUint64(l.b[at:], binary.LittleEndian.Uint64(l.b[at:])+1)
	}
	return n, err
}

func TestOverwrittenWhileRead(t *testing.T) {
	for _, c := range []struct {
		turns   int
		records int
		unread  uint64
	}{{0, 1, 0}, {1, 0, 0}, {100, 0, 1}} {
		w := rectest.New(1, 1, "h", boot, 0, 0)
		w.Thread(1, "t").Put(format.Record{Kind: format.Stop})
		f, err := trace.Read(&live{bytes.NewReader(w.Bytes), w.Bytes, c.turns}, int64(len(w.Bytes)))
		if err != nil || f.Records() != c.records || f.Loss.Unread != c.unread {
			t.Errorf("overwritten %d times: %v, %d records, losses %+v", c.turns, err, f.Records(), f.Loss)
		}
	}
}

func TestOpenAndFind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weft-h-1-00.rec")
	for _, name := range []string{path, filepath.Join(dir, ".weft-h-2-00.rec"), filepath.Join(dir, "other.txt")} {
		if err := os.WriteFile(name, rich().Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, bad, err := trace.Load([]string{dir, path, dir + "/./weft-h-1-00.rec"})
	if err != nil || len(bad) != 0 || len(files) != 1 || files[0].Path != path {
		t.Errorf("%v, %v, %d files", err, bad, len(files))
	}
	if f, err := trace.Open(path); err != nil || f.Path != path {
		t.Error(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Open(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	if _, _, err := trace.Load([]string{filepath.Dir(pipe)}); err == nil || !strings.Contains(err.Error(), "holds no file") {
		t.Errorf("a folder without files: %v", err)
	}
	if _, _, err := trace.Load([]string{path + ".gone"}); err == nil {
		t.Error("a file that is not there is found")
	}
}
