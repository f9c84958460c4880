package top_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weft/internal/metrics"
	"weft/internal/metrics/mettest"
	"weft/internal/metrics/top"
	"weft/internal/owner"
	record "weft/transport/record/format"
)

var update = flag.Bool("update", false, "write the golden file")

// times are n messages that took so long.
func times(n int, ns uint64) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = ns
	}
	return all
}

// look is what two ranks and a stranger have counted after so many seconds; rank 1 is stopped then.
func look(t *testing.T, seconds int) *top.Look {
	t.Helper()
	a, b, c := mettest.New("node1", 7, 1000), mettest.New("node2", 9, 1000), mettest.New("node3", 11, 1000)
	a.Rank(10, 16)
	b.Rank(2, 16)
	to2 := mettest.Place{Flags: record.Sends | record.OverRDMA, Device: "mlx5_0", Peer: "node2", PeerPID: 9, PeerDevice: "mlx5_1", Lanes: 2, Bytes: 1 << 20,
		Times: append(times(100, 1<<30), times(5000*seconds, 50_000)...), Waited: uint64(seconds) * 500_000_000}
	from1 := mettest.Place{Flags: record.Receives | record.OverRDMA, Device: "mlx5_1", Peer: "node1", PeerPID: 7, PeerDevice: "mlx5_0", Lanes: 2, Bytes: 1 << 20,
		Times: times(5000*seconds, 3_000_000), Begun: 4}
	a.Add(to2)
	a.Uncounted(3)
	b.Add(from1)
	lives := map[uint64]owner.Life{7: {Now: 1}, 9: {Now: 1}, 11: {Now: 1}}
	if seconds > 0 {
		stuck := mettest.Place{Flags: record.Sends | record.OverTCP, Device: "eth0", Peer: "node9", PeerPID: 4, PeerDevice: "eth1", Lanes: 1, Since: 0}
		stuck.Failed = 2
		c.Add(stuck)
		lives[9] = owner.Life{Now: 1, Stopped: true}
	}
	var files []*metrics.File
	for _, f := range []*mettest.File{a, b, c} {
		in, err := metrics.Read(bytes.NewReader(f.Bytes), int64(len(f.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in)
	}
	return top.Take(files, func(o *owner.Owner) owner.Life { return lives[o.PID] }, time.Unix(100+int64(seconds), 0))
}

func TestText(t *testing.T) {
	var b strings.Builder
	for _, s := range []top.Screen{{Order: "bytes"}, {Order: "messages", Rows: 1}, {Order: "p99", Width: 40}, {Order: "name", Color: true}, {Order: "waits"}} {
		if err := top.Between(look(t, 0), look(t, 2)).Text(&b, s); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile("testdata/top.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/top.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("-want +got (go test -update):\n%s", d)
	}
}

// Two looks at once, and one at what has gone backwards, divide by nothing and fall to nothing.
func TestBetween(t *testing.T) {
	for _, v := range []*top.View{top.Between(look(t, 2), look(t, 2)), top.Between(look(t, 2), look(t, 1))} {
		for _, r := range v.Rows {
			if r.Messages != 0 || r.Bytes != 0 || r.P99 != 0 || r.Failed != 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	v := top.Between(look(t, 0), look(t, 2))
	for _, r := range v.Rows {
		if r.Process == "rank 10" && (r.Messages != 5000 || r.Bytes != 5000<<20 || r.P99 > 60e-6 || r.Waited != 0.5 || r.Peer != "rank 2") {
			t.Errorf("%+v", r)
		}
	}
}
