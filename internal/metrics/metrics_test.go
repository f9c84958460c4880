package metrics_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/metrics"
	"weft/internal/metrics/mettest"
	"weft/internal/owner"
	"weft/transport/meter/format"
	record "weft/transport/record/format"
)

func link() mettest.Place {
	return mettest.Place{
		Flags: record.Sends | record.OverRDMA, Number: 5, Device: "mlx5_0", Peer: "node2", PeerPID: 9, PeerDevice: "mlx5_1", Lanes: 2, Since: 1500,
		Begun: 3, Bytes: 100, Times: []uint64{70, 1000, 1000, 1 << 50}, Failed: 1, Waits: 2, Waited: 10, LaneBytes: []uint64{150, 250},
	}
}

// rich has two connections and a total, of which one belongs to a connection.
func rich() *mettest.File {
	f := mettest.New("node1", 7, 5000)
	f.Rank(3, 8)
	f.Uncounted(4)
	f.Add(link())
	total := link()
	total.Total, total.Closed, total.Broken, total.Since, total.Lanes, total.Begun = true, 2, 1, 0, 0, 0
	f.Add(total)
	f.Add(mettest.Place{Flags: record.Receives | record.OverTCP, Device: "eth0", Peer: "node2", PeerPID: 9, PeerDevice: "eth1"})
	return f
}

func TestRead(t *testing.T) {
	b := rich().Bytes
	f, err := metrics.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil || len(f.Notes) != 0 || len(f.Links) != 3 {
		t.Fatal(err, f)
	}
	if f.Host != "node1" || f.PID != 7 || f.Rank != 3 || f.Ranks != 8 || f.Uncounted != 4 || !f.Time(f.Alive).Equal(time.Unix(0, 6000)) {
		t.Errorf("%+v", f)
	}
	sums := f.Sums()
	if len(sums) != 2 || sums[0].Device != "eth0" || sums[0].Counts != (metrics.Counts{}) {
		t.Fatalf("%d sums", len(sums))
	}
	s := sums[1]
	if s.Direction() != "send" || s.Network() != "rdma" || s.Connections != 1 || s.Lanes != 2 || s.InFlight != 3 || s.Waiting != 1 || s.Waits != 500 {
		t.Errorf("%+v", s)
	}
	c := &s.Counts
	if c.Messages != 8 || c.Bytes != 800 || c.Failed != 2 || c.Timed() != 8 || c.Waits != 4 || c.Waited != 20 || c.Closed != 2 || c.Broken != 1 || c.LaneBytes[1] != 500 {
		t.Errorf("%+v", c)
	}
	if c.Below(64) != 0 || c.Below(1024) != 6 || c.Quantile(0) < 64 || c.Quantile(0) > 72 || c.Quantile(0.5) < 960 || c.Quantile(0.5) > 1024 || c.Quantile(1) < 4*time.Minute {
		t.Errorf("below %d, quantiles %v %v %v", c.Below(1024), c.Quantile(0), c.Quantile(0.5), c.Quantile(1))
	}
	if d := c.Since(c); d != (metrics.Counts{}) || d.Quantile(0.5) != 0 {
		t.Errorf("nothing is %+v", d)
	}
}

// TestDamaged reads what can be read, and names the rest.
func TestDamaged(t *testing.T) {
	put := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint32(b[at:], v); return b }
	}
	for _, c := range []struct {
		name  string
		harm  func([]byte) []byte
		err   string // or
		note  string
		links int
	}{
		{"empty", func(b []byte) []byte { return nil }, "not a file of weft's metrics", "", 0},
		{"another kind", func(b []byte) []byte { return append([]byte("weftrec\x00"), b[8:]...) }, "not a file of weft's metrics", "", 0},
		{"half a header", func(b []byte) []byte { return b[:100] }, "it has 100 bytes", "", 0},
		{"newer", put(format.OffVersion, format.Version+1), "of version 2", "", 0},
		{"cut", func(b []byte) []byte { return b[:format.Page+format.PlaceBytes+5] }, "", "3 places are in use, it has 1", 1},
		{"more places than there are", put(format.OffUsed, 1<<31), "", "2147483648 places are in use", 3},
		{"other places", put(format.OffPlaceBytes, 5), "", "places of 5 bytes", 3},
		{"a strange state", put(format.Page+format.OffState, 77), "", "1 places are in a state", 2},
		{"killed while it added up", put(format.OffTurns, 3), "", "something may be counted twice", 3},
		{"a rank that cannot be", put(format.OffRank, 99), "", "", 3},
	} {
		b := c.harm(rich().Bytes)
		f, err := metrics.Read(bytes.NewReader(b), int64(len(b)))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(f.Links) != c.links || !strings.Contains(strings.Join(f.Notes, "\n"), c.note) || (c.note == "") != (len(f.Notes) == 0) {
			t.Errorf("%s: %v, %+v", c.name, err, f)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{"a.met": rich().Bytes, "b.met": rich().Bytes, "c.met": nil, ".d.met": nil, "e.rec": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, bad, err := metrics.Load([]string{dir})
	if err != nil || len(files) != 1 || len(bad) != 2 || !strings.Contains(bad[0].Error(), "same process") || !strings.Contains(bad[1].Error(), "not a file") {
		t.Errorf("%v %v %v", files, bad, err)
	}
	if files, bad, err := metrics.Load([]string{t.TempDir()}); err != nil || len(files)+len(bad) != 0 {
		t.Errorf("an empty folder: %v %v %v", files, bad, err)
	}
	if _, _, err := metrics.Load([]string{dir + "/none"}); err == nil {
		t.Error("a folder that is not there was read")
	}
}

func TestLife(t *testing.T) {
	f, err := metrics.Read(bytes.NewReader(rich().Bytes), int64(len(rich().Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	shown := f.Time(f.Alive)
	for _, c := range []struct {
		life owner.Life
		late time.Duration
		want metrics.Life
	}{
		{owner.Life{}, time.Second, metrics.Runs},
		{owner.Life{}, time.Minute, metrics.Silent},
		{owner.Life{Now: 1}, time.Minute, metrics.Runs}, // the kernel knows
		{owner.Life{Now: 1, Stopped: true}, 0, metrics.Stopped},
		{owner.Life{Now: 1, Gone: true}, 0, metrics.Ended},
	} {
		if got := metrics.LifeOf(f, func(*owner.Owner) owner.Life { return c.life }, shown.Add(c.late)); got != c.want {
			t.Errorf("%+v, %v late: %s, want %s", c.life, c.late, got, c.want)
		}
	}
}

// FuzzRead: no file is too strange to be read without a panic, and texts do not steer a terminal.
func FuzzRead(f *testing.F) {
	whole := rich().Bytes
	f.Add(whole)
	f.Add(whole[:format.Page+100])
	f.Fuzz(func(t *testing.T, input []byte) {
		b := bytes.Clone(input) // which is the fuzzer's
		if len(b) > format.OffTurns {
			b[format.OffTurns] &^= 1 // else it waits for somebody
		}
		in, err := metrics.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, s := range in.Sums() {
			s.Counts.Quantile(0.99)
			for _, text := range []string{s.Device, s.Peer, s.PeerDevice, in.Host, in.Build} {
				if strings.ContainsAny(text, "\x00\x1b\n") {
					t.Errorf("text %q", text)
				}
			}
		}
		in.Time(in.Alive)
	})
}
