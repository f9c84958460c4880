package chrome_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace/chrome"
	"weft/internal/trace/draw"
)

func TestWrite(t *testing.T) {
	p := &draw.Picture{Processes: []*draw.Process{
		{Name: "rank 0", Labels: []string{"lost: 3"}, Tracks: []*draw.Track{
			{Name: "above", Slices: []draw.Slice{
				{Name: "two", Category: "c", From: 15, To: 40, In: []uint64{7}},
				{Name: "one", Category: "c", From: 1234010, To: 1234020, Args: []draw.Arg{{Name: "text", Value: "x\""}, {Name: "flag", Value: true}, {Name: "count", Value: uint64(5)}},
					Inner: []draw.Slice{{Name: "two", Category: "d", From: 1234012, To: 1234014}}},
			}, Tracks: []*draw.Track{{Name: "below", Slices: []draw.Slice{{Name: "three", Category: "c", From: 1, To: 1}}}}},
		}},
		{Name: "rank 1", Tracks: []*draw.Track{{Name: "link", Slices: []draw.Slice{{Name: "send", Category: "c", From: 15, To: 16, Out: 7}}}}},
	}}
	var out bytes.Buffer
	if err := chrome.Write(&out, p); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Errorf("not JSON:\n%s", &out)
	}
	if leaves, arrives := strings.Index(out.String(), `"ph":"s"`), strings.Index(out.String(), `"ph":"f"`); leaves < 0 || leaves > arrives {
		t.Errorf("the arrow leaves at byte %d and arrives at %d, at one time: readers drop it", leaves, arrives)
	}
	golden.File(t, "testdata/events.json", out.String())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestNoRoom(t *testing.T) {
	if err := chrome.Write(full{}, &draw.Picture{}); err == nil {
		t.Error("nothing was written, and nothing said")
	}
}
