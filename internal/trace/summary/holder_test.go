package summary_test

import (
	"slices"
	"strings"
	"testing"

	"weft/internal/trace/rectest"
)

// ms are milliseconds of the recorder's clock.
const ms = 1_000_000

// around has three processes send around a ring for a second, one message every 10 ms: each waits for it from when it has sent
// its own, but for one that takes so long before it looks for one. Of each 100 ms a thread of each waits so long for a core.
func around(late int, network uint32, long, delay uint64) []*rectest.File {
	var files []*rectest.File
	for r := range uint64(3) {
		f := rectest.New(4, r+1, "n", 1, 0, 0)
		th := f.Thread(1, "t")
		th.Link(10, 0x10, true, network, 100+r, "d0", "n", 0)
		th.Link(10, 0x20, false, network, 100+(r+2)%3, "d0", "n", 0)
		for i := range uint64(10) {
			th.RunDelay((i+1)*100*ms, 100*ms, delay)
		}
		for i := range uint64(100) {
			begin := (i + 1) * 10 * ms
			posted := begin
			if int(r) == late {
				posted += long // it does something else
			}
			left := func(sender uint64) uint64 { return begin + 9*ms + sender*1000 }
			out := th.Message(left(r), 0x10, true, i+1, 100, 5)
			th.MessageEnd(left(r)+100_000, out, i+1, 100, 0)
			in := th.Message(min(posted, left((r+2)%3)+50_000), 0x20, false, i+1, 100, 5)
			th.MessageEnd(left((r+2)%3)+200_000, in, i+1, 100, 0)
		}
		files = append(files, f)
	}
	return files
}

// Who neither waits nor has anything under way keeps the others waiting.
func TestHolders(t *testing.T) {
	for _, c := range []struct {
		name  string
		late  int
		long  uint64
		delay uint64
		want  string // the process
	}{
		{"all wait", -1, 0, 0, ""},
		{"one seldom does", 1, 7 * ms, 0, "n:2 keeps others waiting"},
		{"one seldom does, on busy cores", 1, 7 * ms, 90 * ms, "n:2 keeps others waiting"},
		{"one is a little late", 1, ms / 2, 0, ""},
		{"one is later", 1, 5 * ms / 2, 0, "n:2 keeps others waiting"},
		{"one is as late as on busy cores", 1, 5 * ms / 2, 90 * ms, ""},
	} {
		for _, network := range []uint32{1, 2} {
			r := build(t, around(c.late, network, c.long, c.delay)...)
			var found []string
			for _, f := range r.Findings {
				found = append(found, f.What)
			}
			if len(found) != len(strings.Fields(c.want))/4 || c.want != "" && !slices.Contains(found, c.want) {
				t.Errorf("%s over %d: %+v, want %q", c.name, network, r.Findings, c.want)
			}
		}
	}
}
