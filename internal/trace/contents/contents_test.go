package contents_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace"
	"weft/internal/trace/contents"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

func read(t *testing.T, f *rectest.File) *trace.File {
	t.Helper()
	r, err := trace.Read(bytes.NewReader(f.Bytes), int64(len(f.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	r.Path = "weft-node0-100-00.rec"
	return r
}

func TestText(t *testing.T) {
	f := rectest.Job{Ranks: 2, PerMachine: 1, Iterations: 3, Version: 6}.Files()[0]
	th := f.Thread(9, "other")
	th.Put(format.Record{Kind: format.Comm, Comm: 2, Time: 3000, C: 3 << 32})
	th.Put(format.Record{Kind: format.CommEnd, Comm: 2, Time: 9000})
	th.RunDelay(1_003_000, 1_000_000, 900_000)
	call := th.Start(format.CollAPI, 4000, format.Record{Comm: 2, Flags: 1})
	th.Start(format.Coll, 4100, format.Record{Comm: 2, Parent: call})
	coll := th.Start(format.Coll, 4200, format.Record{Comm: 3, Rank: 1})
	th.Stop(coll, 4300)
	th.Stop(12345, 4400)
	m := th.Message(5000, 0x10, true, 99, 8, 0)
	th.Put(format.Record{Kind: format.MessageEnd, Time: 5100, ID: m, Flags: 1})
	th.Message(5200, 0x10, true, 100, 8, 0)
	th.Skip()
	th.Stop(coll, 5300)
	r := read(t, f)
	var out strings.Builder
	if err := contents.New(r).Text(&out); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/text.txt", out.String())
}

// A file without records has lists, not nulls.
func TestEmpty(t *testing.T) {
	b, err := json.Marshal(contents.New(read(t, rectest.New(1, 1, "h", 1, 0, 0))))
	if err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("%v: %s", err, b)
	}
}
