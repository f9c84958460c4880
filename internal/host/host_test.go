package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

// start runs a host for a test; a death that the test did not expect fails it.
func start(t *testing.T, o host.Options) *host.Host {
	t.Helper()
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	o.Bin = bin
	h, err := host.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return h
}

// good compiles the correct minimal plugin.
func good(t *testing.T) string {
	t.Helper()
	path, err := build.Plugin("tools/host/testdata/good.c")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, h *host.Host, path string, version int) *host.Net {
	t.Helper()
	lib, err := h.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := lib.BindNet(version)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Init(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMemory(t *testing.T) {
	h := start(t, host.Options{})
	p, err := h.AllocGuarded(1001)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Fill(p, 1001, 42); err != nil {
		t.Fatal(err)
	}
	got, err := h.Read(p, 1001)
	if err != nil || string(got) != string(host.Pattern(42, 1001)) {
		t.Errorf("mem.fill and Pattern differ (%v)", err)
	}
	if err := h.Check(p, 1001, 42); err != nil {
		t.Error(err)
	}
	if err := h.Write(p+500, []byte{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := h.Check(p, 1001, 42); err == nil || !strings.Contains(err.Error(), "offset 500") {
		t.Errorf("a changed byte: %v", err)
	}
	if err := h.Free(p); err != nil {
		t.Error(err)
	}
	if err := h.Free(p); err == nil {
		t.Error("freed twice")
	}
}

func TestText(t *testing.T) {
	h := start(t, host.Options{})
	for _, v := range []string{"", "plain", "a b=c%20\n\x7f", "žluťoučký", strings.Repeat("x y", 100_000)} {
		if err := h.Setenv("WEFT_T", v); err != nil {
			t.Fatal(err)
		}
		r, err := h.Call("main", "proc.getenv", host.Args{"name", "WEFT_T"})
		if err != nil || r.Str("value") != v {
			t.Errorf("%.20q came back as %.20q (%v)", v, r.Str("value"), err)
		}
	}
	if _, err := h.Call("main", "no.such", nil); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("unknown command: %v", err)
	}
}

func TestThreads(t *testing.T) {
	h := start(t, host.Options{})
	slow := h.Go("a", "proc.sleep", host.Args{"ms", 300})
	if _, err := h.Call("b", "proc.stat", nil); err != nil {
		t.Fatal(err)
	}
	st, err := h.Stat()
	if err != nil || st.Threads < 4 || st.FDs < 3 || st.RSS == 0 {
		t.Errorf("stat %+v (%v)", st, err)
	}
	if _, err := slow.Wait(); err != nil {
		t.Error(err)
	}
}

func TestForkAndSignals(t *testing.T) {
	h := start(t, host.Options{})
	c, err := h.Fork("service", 5*time.Second, false, host.Line("proc.getenv", host.Args{"name", "PATH"}), host.Line("bad", nil))
	if err != nil || c.Exit != 0 || len(c.Lines) != 2 || c.Lines[0].Str("value") == "" || c.Lines[1].Str("code") != "usage" {
		t.Fatalf("child %+v (%v)", c, err)
	}
	c, err = h.Fork("service", 200*time.Millisecond, false, host.Line("proc.sleep", host.Args{"ms", 60_000}))
	if err != nil || c.Signal != int(syscall.SIGALRM) {
		t.Errorf("a child that hangs: %+v (%v)", c, err)
	}
	if c, err = h.Fork("main", time.Second, true); err != nil {
		t.Fatal(err)
	}
	if err := h.Reap(c, true); err != nil || c.Signal != int(syscall.SIGKILL) {
		t.Errorf("a held child: %+v (%v)", c, err)
	}
	if _, err := h.Call("main", "sig.install", host.Args{"sig", int(syscall.SIGUSR1)}); err != nil {
		t.Fatal(err)
	}
	if err := h.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for wait := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r, err := h.Call("main", "sig.count", host.Args{"sig", int(syscall.SIGUSR1)})
		if err == nil && r.Int("count") == 1 && h.Signals(int(syscall.SIGUSR1)) == 1 {
			break
		}
		if err != nil || time.Now().After(wait) {
			t.Fatalf("counted %d signals (%v)", r.Int("count"), err)
		}
	}
}

// A program that is no host, or hangs before it is one, is ended.
func TestNeverReady(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "deaf")
	if err := os.WriteFile(bin, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := host.Start(host.Options{Bin: bin, Name: "victim", Deadline: time.Second})
	var d *host.DeathError
	if !errors.As(err, &d) || !strings.Contains(err.Error(), "victim: not ready within 1s of its start; killed after ") {
		t.Errorf("%v", err)
	}
}

func TestDeath(t *testing.T) {
	for _, c := range []struct {
		name, want string
		kill       func(h *host.Host) error
	}{
		{"fault", "commands open: main: mem.fill", // SIGSEGV, or SIGABRT of a sanitizer
			func(h *host.Host) error {
				_, err := h.Call("main", "mem.fill", host.Args{"addr", host.Ptr(16), "size", 8, "seed", 1})
				return err
			}},
		{"deadline", "proc.sleep on thread x did not answer", func(h *host.Host) error {
			_, err := h.CallIn(100*time.Millisecond, "x", "proc.sleep", host.Args{"ms", 60_000})
			return err
		}},
		{"exit", "", func(h *host.Host) error { return h.Exit("_exit", 7) }},
		{"call", "listen", func(h *host.Host) error {
			n := load(t, h, good(t), 12)
			_, err := n.Call("service", "listen", host.Args{"handle", host.Ptr(16)})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin, err := build.Host()
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Start(host.Options{Bin: bin, Name: "victim"})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			err = c.kill(h)
			if c.name == "exit" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var d *host.DeathError
			if !errors.As(err, &d) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want a death that says %q, have %v", c.want, err)
			}
			if _, err := h.Call("main", "proc.stat", nil); !errors.As(err, &d) {
				t.Errorf("a call of a dead host: %v", err)
			}
		})
	}
}
