package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"weft/internal/metrics/mettest"
	"weft/internal/metrics/top"
	record "weft/transport/record/format"
)

// metered is a folder with what a process has counted.
func metered(t *testing.T) string {
	t.Helper()
	f := mettest.New("node1", 7, 5000)
	f.Rank(3, 4)
	f.Add(mettest.Place{Flags: record.Sends | record.OverRDMA, Device: "mlx5_0", Peer: "node2", PeerPID: 9, PeerDevice: "mlx5_1", Lanes: 2, Bytes: 100, Times: []uint64{5000, 6000}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weft-node1-7-00.met"), f.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMetrics(t *testing.T) {
	dir, broken := metered(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "a.met"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weft.prom")
	for _, c := range []struct {
		args   string
		status int
		out    []string
		err    string
	}{
		{"", 2, nil, "want files"},
		{"-h", 0, []string{"usage: weft metrics", "--textfile"}, ""},
		{"--what", 2, nil, "weft metrics -h explains"},
		{dir + "/none", 2, nil, "no such file"},
		{dir, 0, []string{`weft_messages_total{device="mlx5_0",direction="send",host="node1",network="rdma",peer="node2",peer_device="mlx5_1",peer_pid="9",pid="7",rank="3"} 2`, `state="silent"`}, "note: "},
		{dir + " " + broken, 1, []string{"weft_file_problems 1", "weft_bytes_total{"}, "not a file of weft's metrics"},
		{t.TempDir(), 0, []string{"weft_file_problems 0"}, "note: " + os.TempDir()},
		{broken, 2, []string{"weft_file_problems 1"}, "not a file of weft's metrics"},
		{broken + "/a.met", 2, []string{"weft_file_problems 1"}, "not a file of weft's metrics"},
		{"--textfile x.txt " + dir, 2, nil, "end it in .prom"},
		{"--textfile " + file + " " + dir, 0, nil, "note: "},
		{"--textfile " + dir + "/none/x.prom " + dir, 2, nil, "no such file"},
		{"--every 5s " + dir, 2, nil, "--every is for"},
		{"--every 5ms --textfile x.prom " + dir, 2, nil, "a second is the least"},
		{"--otlp nowhere " + dir, 2, nil, "no URL of a collector"},
		{"--listen 127.0.0.1:x " + dir, 2, nil, "unknown port"},
	} {
		var out, err bytes.Buffer
		if got := execute(t.Context(), strings.Fields("metrics "+c.args+" --sys "+dir), &out, &err); got != c.status {
			t.Errorf("weft metrics %s: status %d, want %d: %s", c.args, got, c.status, &err)
		}
		for _, part := range c.out {
			if !strings.Contains(out.String(), part) {
				t.Errorf("weft metrics %s: %q is missing in\n%s", c.args, part, &out)
			}
		}
		if !strings.Contains(err.String(), c.err) || c.err == "" && err.Len() > 0 {
			t.Errorf("weft metrics %s: said %q, want %q", c.args, &err, c.err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "weft_messages_total") {
		t.Error(err)
	}
}

func TestListenAddress(t *testing.T) {
	for given, want := range map[string]string{"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "0.0.0.0:1": "0.0.0.0:1", "[::1]:5": "[::1]:5"} {
		if got := address(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// lines is a buffer that another goroutine reads.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer // protected by mu
	got chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.got <- struct{}{}:
	default:
	}
	return l.all.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// TestMetricsServes replies to a scrape, while it writes a file, until it is told to end.
func TestMetricsServes(t *testing.T) {
	dir, file := metered(t), filepath.Join(t.TempDir(), "weft.prom")
	ctx, cancel := context.WithCancel(t.Context())
	said, done := &lines{got: make(chan struct{}, 1)}, make(chan int)
	go func() {
		done <- execute(ctx, []string{"metrics", "--listen", "0", "--textfile", file, "--every", "1h", "--sys", dir, dir}, io.Discard, said)
	}()
	var url string
	for url == "" {
		<-said.got
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(said.String())
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(text), "weft_messages_total") {
		t.Errorf("%v %s", err, text)
	}
	cancel()
	if status := <-done; status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
}

func TestTop(t *testing.T) {
	dir, broken := metered(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "a.met"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		out    []string
		err    string
	}{
		{"", 2, nil, "want files"},
		{"-h", 0, []string{"usage: weft top", "--sort"}, ""},
		{"--sort size " + dir, 2, nil, "--sort size: there are bytes, messages"},
		{"--every 1ms " + dir, 2, nil, "100ms is the least"},
		{"--once --every 100ms " + dir + "/none", 2, nil, "no such file"},
		{"--once --every 100ms " + t.TempDir(), 0, []string{"0 processes"}, "is WEFT_PROFILE=metrics set"},
		{"--once --every 100ms " + broken, 2, []string{"0 processes"}, "not a file of weft's metrics"},
		{"--once --every 100ms " + dir, 0, []string{"1 process, 1 silent", "rank 3  ->  node2:9  mlx5_0 -> mlx5_1  RDMA 1/2"}, ""},
		{"--once --every 100ms --sort waits " + dir + " " + broken, 1, []string{"by waits"}, "not a file of weft's metrics"},
	} {
		var out, err bytes.Buffer
		if got := execute(t.Context(), strings.Fields("top "+c.args), &out, &err); got != c.status {
			t.Errorf("weft top %s: status %d, want %d: %s", c.args, got, c.status, &err)
		}
		for _, part := range c.out {
			if !strings.Contains(out.String(), part) {
				t.Errorf("weft top %s: %q is missing in\n%s", c.args, part, &out)
			}
		}
		if !strings.Contains(err.String(), c.err) || c.err == "" && err.Len() > 0 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("weft top %s: said %q, want %q", c.args, &err, c.err)
		}
	}
	var out bytes.Buffer
	var v top.View
	if status := execute(t.Context(), []string{"top", "--once", "--json", "--every", "100ms", dir}, &out, io.Discard); status != 0 {
		t.Error(status)
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || len(v.Rows) != 1 || v.Rows[0].Total != 2 || v.Rows[0].State != "silent" {
		t.Errorf("%v %s", err, &out)
	}
}
