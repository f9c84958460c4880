package meter

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"weft/internal/report"
	"weft/transport/meter/format"
	record "weft/transport/record/format"
)

// warnings are those of a log.
type warnings struct {
	report.Discard
	lines *[]string
}

func (w warnings) Warn(format string, args ...any) {
	*w.lines = append(*w.lines, fmt.Sprintf(format, args...))
}

// TestLinks opens and closes connections until there is no place: what closed ones have
// counted stays, and their places are used again. It is one test, for a process has one file.
func TestLinks(t *testing.T) {
	if Add(End{}) != nil {
		t.Fatal("counted without a file")
	}
	Rank(1, 2) // nobody hears it
	var lines []string
	path, err := Open(Config{Dir: t.TempDir(), Build: "b", Log: warnings{lines: &lines}})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Open(Config{Dir: "/nowhere", Log: report.Discard{}}); err != nil || again != path {
		t.Errorf("a second file %q, %v", again, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 || st.Size() != format.Bytes {
		t.Errorf("%v %v", st, err)
	}
	Rank(3, 4)
	Rank(0, 2) // of a smaller communicator
	word := func(offset int) uint64 {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint64(text[offset:])
	}
	if ranks := word(format.OffRank); ranks != 4|4<<32 || word(record.OffAlive) == 0 {
		t.Errorf("rank and ranks %#x", ranks)
	}
	Stalls(2, 1)
	if word(format.OffStalls) != 2 || word(format.OffStalled)&0xffffffff != 1 {
		t.Errorf("%d waits were told, %d last", word(format.OffStalls), word(format.OffStalled)&0xffffffff)
	}
	if word(record.OffPID) != uint64(os.Getpid()) || word(record.OffStarted) != record.Started("/proc/self/stat") || word(record.OffPIDs) != record.PIDs("/proc/self/ns/pid") {
		t.Errorf("process %d, which began at %d in %d, is another: counters stand in its place", word(record.OffPID), word(record.OffStarted), word(record.OffPIDs))
	}
	place := func(number, offset int) uint64 {
		return word(format.Page + number*format.PlaceBytes + offset)
	}

	end := End{Flags: record.Sends | record.OverTCP, Number: 7, Device: "eth0", Peer: "node2", PeerPID: 9, PeerDevice: "eth1"}
	other := end
	other.PeerDevice = "eth2"
	a, b, c := Add(end), Add(end), Add(other)
	for i, l := range []*Link{a, b, c} {
		l.place.messages, l.place.failed, l.place.begun = 10, 1, 12
		l.place.bucket[255], l.place.lane_bytes[31], l.place.since = 10, 100, 5
		if place(i, format.OffState)&0xff != format.Connection || place(i, format.OffOpened) == 0 {
			t.Errorf("place %d is no connection's", i)
		}
	}
	a.Close(false) // becomes a total
	b.Close(true)  // is added to it
	c.Close(false) // is another
	for i, want := range []struct{ state, messages, closed, broken uint64 }{{format.Total, 20, 2, 1}, {format.Free, 10, 1, 1}, {format.Total, 10, 1, 0}} {
		if place(i, format.OffState)&0xff != want.state || place(i, format.OffMessages) != want.messages || place(i, format.OffClosed) != want.closed || place(i, format.OffBroken) != want.broken {
			t.Errorf("place %d: state %d, %d messages, %d closed, %d broken", i, place(i, format.OffState)&0xff, place(i, format.OffMessages), place(i, format.OffClosed), place(i, format.OffBroken))
		}
	}
	if place(0, format.OffBuckets+8*255) != 20 || place(0, format.OffLaneBytes+8*31) != 200 || place(0, format.OffBegun) != 22 || place(0, format.OffSince) != 0 {
		t.Error("a total lacks something")
	}
	d := Add(end)
	if d.place != b.place || place(1, format.OffMessages) != 0 || place(1, format.OffSince) != 0 {
		t.Error("a place is not used again, or not empty")
	}
	if turns := word(format.OffTurns); turns != 6 || word(format.OffUsed)&0xffffffff != 3 {
		t.Errorf("%d turns", turns)
	}

	for Add(end) != nil {
	}
	if Add(end) != nil || word(format.OffUncounted) != 2 || len(lines) != 1 {
		t.Errorf("%d connections are not counted, log %q", word(format.OffUncounted), lines)
	}
	d.Close(false)
	if Add(end) == nil {
		t.Error("no place, though a connection was closed")
	}
}
