package prom_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"weft/internal/metrics/mettest"
	"weft/internal/metrics/prom"
	record "weft/transport/record/format"
)

var update = flag.Bool("update", false, "write the golden file")

// job is a collector of what two processes have counted, of another machine.
func job(t *testing.T) *prom.Collector {
	t.Helper()
	dir, sys := t.TempDir(), t.TempDir()
	a := mettest.New("node1", 7, 5_000_000_000)
	a.Rank(0, 2)
	a.Stalls(3, 1)
	link := mettest.Place{
		Flags: record.Sends | record.OverRDMA, Device: "mlx5_0", Peer: "node2", PeerPID: 9, PeerDevice: "mlx5_1", Lanes: 2, Since: 1500,
		Begun: 3, Bytes: 100, Times: []uint64{70, 5000, 5000, 1 << 50}, Failed: 1, Waits: 2, Waited: 1_500_000_000, LaneBytes: []uint64{150, 250},
	}
	a.Add(link)
	link.Total, link.Closed, link.Broken = true, 2, 1
	a.Add(link)
	b := mettest.New("node2", 9, 5_000_000_000)
	b.Uncounted(1)
	b.Add(mettest.Place{Flags: record.Receives | record.OverTCP, Device: "eth0", Peer: "node1", PeerPID: 7, PeerDevice: `e"th1`, Lanes: 4, Bytes: 10, Times: []uint64{2000}})
	for name, text := range map[string][]byte{"a.met": a.Bytes, "b.met": b.Bytes, "broken.met": []byte("what")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := filepath.Join(sys, "class/infiniband/mlx5_0/ports/1/hw_counters")
	if err := os.MkdirAll(port, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(port, "np_cnp_sent"), []byte("12\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return &prom.Collector{Names: []string{dir}, Proc: t.TempDir(), Sys: sys, Host: "here"}
}

func TestWrite(t *testing.T) {
	c := job(t)
	var said []error
	c.Say = func(err error) { said = append(said, err) }
	for range 2 { // what cannot be read is said once
		var b bytes.Buffer
		if err := prom.Write(&b, c.Gatherer()); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile("testdata/job.prom", b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/job.prom")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("-want +got (go test -update):\n%s", d)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0].Error(), "broken.met") {
		t.Errorf("said %v", said)
	}
}

// TestLint has Prometheus's linter look at names, units and texts.
// Of two processes that have one host and number, as in two containers, the one that ran last is shown, and the other named.
func TestSameNumber(t *testing.T) {
	dir := t.TempDir()
	for name, alive := range map[string]uint64{"earlier.met": 5_000_000_000, "later.met": 6_000_000_000} {
		f := mettest.New("node1", 7, alive)
		f.Uncounted(alive)
		f.Bytes[record.OffProcess] = name[0]
		if err := os.WriteFile(filepath.Join(dir, name), f.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var noted []string
	c := &prom.Collector{Names: []string{dir}, Proc: t.TempDir(), Sys: t.TempDir(), Host: "here", Note: func(err error) { noted = append(noted, err.Error()) }}
	var b bytes.Buffer
	if err := prom.Write(&b, c.Gatherer()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "weft_connections_uncounted_total{host=\"node1\",pid=\"7\",rank=\"\"} 6e+09") {
		t.Error(b.String())
	}
	if !slices.ContainsFunc(noted, func(n string) bool { return strings.Contains(n, "earlier.met") && strings.Contains(n, "left out") }) {
		t.Errorf("noted %q", noted)
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(job(t).Gatherer())
	if err != nil || len(problems) != 0 {
		t.Error(problems, err)
	}
}

func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- prom.Serve(ctx, l, job(t).Gatherer()) }()
	get := func(path, accept string) (int, string) {
		t.Helper()
		r, err := http.NewRequest("GET", "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, text := get("/metrics", ""); status != 200 || !strings.Contains(text, "weft_message_seconds_bucket{") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get("/metrics", "application/openmetrics-text; version=1.0.0"); status != 200 || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get("/", ""); status != 200 {
		t.Error(status)
	}
	if status, _ := get("/other", ""); status != 404 {
		t.Error(status)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
