package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
)

// TestConformCommand runs the command over plugins good, bad and absent.
func TestConformCommand(t *testing.T) {
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	plugin := func(source string) string {
		path, err := build.Plugin("tools/host/testdata/"+source, "-O0")
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := plugin("broken/lib.tables.c")
	good, bad, fragile := plugin("good.c"), plugin("broken/size.zero.c"), plugin("broken/close.twice.c")
	report := filepath.Join(t.TempDir(), "report.xml")
	for _, c := range []struct {
		args   []string
		status int
		says   []string
	}{
		{[]string{"--abi", "v6", "--rule", "size.,close.", good}, 0, []string{"0 do not"}},
		{[]string{"--tap", "--abi", "12", "--rule", "size.zero", good}, 0, []string{"TAP version 13", "net v12 size.zero", "1.."}},
		{[]string{"--rule", "size.zero", "--junit", report, bad}, 1, []string{"FAIL  size.zero", "nothing to send", "contract:"}},
		{[]string{"--rule", "close.twice", fragile}, 0, []string{"care  close.twice"}},
		{[]string{"--rule", "close.twice", "--strict", fragile}, 1, []string{"close.twice"}},
		{[]string{"--abi", "5", bad}, 2, []string{"does not export ncclNetPlugin_v5"}},
		{[]string{"--abi", fmt.Sprint(host.FamilyNet.Newest() + 1), good}, 2, []string{"not a table version"}},
		{[]string{"--rule", "size.none", good}, 2, []string{"no rule size.none"}},
		{[]string{"/nowhere/libnccl-net-x.so"}, 2, []string{"/nowhere/libnccl-net-x.so: no such file"}},
		{[]string{"libnccl-net-nowhere.so"}, 2, []string{"lib.load", "no table could be judged"}},
		{[]string{bin}, 2, []string{"lib.load", bin + ": no table could be judged"}},
		{[]string{none}, 2, []string{"lib.tables", "no table could be judged"}},
		{[]string{good, "--abi", "v6", "--rule", "size.zero"}, 0, []string{good + "\n", good + ": "}},
		{[]string{good, "--rule", "size.zero", bad, "--abi=12"}, 1, []string{good + "\n", bad + "\n", "FAIL  size.zero"}},
		{[]string{bad, "--abi", "12", "--rule", "size.zero", "--", good}, 1, []string{good + ": ", bad + ": "}},
		{[]string{good, "/nowhere/x.so", "--abi", "12", "--rule", "size.zero"}, 2, []string{good + ": ", "/nowhere/x.so: no such file"}},
		{[]string{"--patience", "5", good}, 2, []string{"write 5s"}},
		{nil, 2, []string{"want the library"}},
		{[]string{"-h"}, 0, []string{"usage: weft conform"}},
		{[]string{"--list"}, 0, []string{"close.twice", "dereg.barrier"}},
	} {
		var out bytes.Buffer
		if got := execute(t.Context(), append([]string{"conform", "--host", bin}, c.args...), &out, &out); got != c.status {
			t.Errorf("%q: status %d, want %d\n%s", c.args, got, c.status, out.String())
		}
		for _, s := range c.says {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%q does not say %q:\n%s", c.args, s, out.String())
			}
		}
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), "<failure") {
		t.Errorf("JUnit report: %v\n%s", err, text)
	}
}

// said takes what is written from several goroutines.
type said struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestConformPrintsThePluginsLog(t *testing.T) {
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	for _, verbose := range []string{"-v=false", "-v"} {
		var out, logs said
		if got := execute(t.Context(), []string{"conform", "--host", bin, "--abi", fmt.Sprint(host.FamilyNet.Newest()), "--rule", "conn.once", verbose, ours(t)}, &out, &logs); got != 0 {
			t.Fatalf("status %d\n%s%s", got, out.text(), logs.text())
		}
		if has := strings.Contains(logs.text(), "# INFO ") && strings.Contains(logs.text(), " over "); has != (verbose == "-v") {
			t.Errorf("%s prints\n%s", verbose, logs.text())
		}
	}
}
