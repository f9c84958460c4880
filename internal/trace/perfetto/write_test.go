package perfetto_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/internal/golden"
	"weft/internal/trace/draw"
	"weft/internal/trace/perfetto"
)

// decode shows a message whose fields are not known. Those that hold messages are named.
func decode(t *testing.T, b *strings.Builder, depth int, m []byte, nested map[protowire.Number]map[protowire.Number]bool, in protowire.Number) {
	t.Helper()
	for len(m) > 0 {
		field, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		m = m[n:]
		fmt.Fprintf(b, "%*s%d", 2*depth, "", field)
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(m)
			fmt.Fprintf(b, ": %d\n", v)
			m = m[max(n, 0):]
		case protowire.Fixed64Type:
			v, n := protowire.ConsumeFixed64(m)
			fmt.Fprintf(b, ": fixed %d\n", v)
			m = m[max(n, 0):]
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(m)
			if n < 0 {
				t.Fatal(protowire.ParseError(n))
			}
			m = m[n:]
			if nested[in][field] {
				b.WriteString(" {\n")
				decode(t, b, depth+1, v, nested, field)
				fmt.Fprintf(b, "%*s}\n", 2*depth, "")
			} else {
				fmt.Fprintf(b, ": %q\n", v)
			}
		default:
			t.Fatalf("wire type %d", kind)
		}
	}
}

// messages are the fields that hold one, by the field that holds them.
var messages = map[protowire.Number]map[protowire.Number]bool{
	0:  {1: true},
	1:  {11: true, 12: true, 60: true},
	11: {4: true},
	12: {1: true, 2: true, 3: true, 29: true},
	60: {3: true},
}

func TestWrite(t *testing.T) {
	p := &draw.Picture{Processes: []*draw.Process{
		{Name: "rank 0", Labels: []string{"lost: 3"}, Tracks: []*draw.Track{
			{Name: "above", Slices: []draw.Slice{
				{Name: "two", Category: "c", From: 15, To: 40, In: []uint64{7}},
				{Name: "one", Category: "c", From: 10, To: 20, Args: []draw.Arg{{Name: "text", Value: "x"}, {Name: "more", Value: "x"}, {Name: "flag", Value: true}, {Name: "no", Value: false}, {Name: "count", Value: uint64(5)}, {Name: "less", Value: int64(-1)}},
					Inner: []draw.Slice{{Name: "two", Category: "d", From: 12, To: 14}}},
			}, Tracks: []*draw.Track{{Name: "below"}}},
		}},
		{Name: "rank 1", Tracks: []*draw.Track{{Name: "link", Slices: []draw.Slice{{Name: "send", Category: "c", From: 15, To: 16, Out: 7}}}}},
	}}
	var out bytes.Buffer
	if err := perfetto.Write(&out, p); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	decode(t, &b, 0, out.Bytes(), messages, 0)
	golden.File(t, "testdata/packets.txt", b.String())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestNoRoom(t *testing.T) {
	if err := perfetto.Write(full{}, &draw.Picture{}); err == nil {
		t.Error("nothing was written, and nothing said")
	}
}
