package faults

import (
	"syscall"
	"testing"
	"time"

	"weft/internal/host"
)

func killPID(pid int) { syscall.Kill(pid, syscall.SIGKILL) }

// TestFork forks with a live connection: every call in the child returns
// ncclSystemError and none hangs, the child ends, and the parent goes on.
func TestFork(t *testing.T) {
	for _, version := range []int{first, 6, newest} {
		forking(t, start(t, "parent", version), start(t, "peer", version), version)
	}
}

func forking(t *testing.T, a, b *peer, version int) {
	t.Helper()
	c, back := join(a, b, 1<<20), join(b, a, 1<<20)
	f := traffic{size: 100_000, count: 10, window: 4}
	c.move(f)
	on := a.n.As
	lines := []string{
		host.Line("net.isend", host.Args{"on", on, "comm", c.send, "data", c.a, "size", 100, "tag", 1, "mh", c.amh}),
		host.Line("net.irecv", host.Args{"on", on, "comm", back.recv, "data", back.b, "size", 100, "tag", 1, "mh", back.bmh}),
		host.Line("net.test", host.Args{"on", on, "req", 0x1230}),
		host.Line("net.listen", host.Args{"on", on, "ctx", a.n.Ctx, "dev", 0, "handle", c.a}),
		host.Line("net.connect", host.Args{"on", on, "ctx", a.n.Ctx, "dev", 0, "handle", c.a}),
		host.Line("net.regMr", host.Args{"on", on, "comm", c.send, "data", c.a, "size", 100, "type", 1}),
		host.Line("net.deregMr", host.Args{"on", on, "comm", c.send, "mh", c.amh}),
		host.Line("net.closeSend", host.Args{"on", on, "comm", c.send}),
		host.Line("net.closeRecv", host.Args{"on", on, "comm", back.recv}),
		host.Line("net.devices", host.Args{"on", on}),
		host.Line("net.init", host.Args{"on", on}),
	}
	for _, thread := range []string{"main", "service", "progress"} {
		child, err := a.h.Fork(thread, 10*time.Second, false, lines...)
		must(t, err, "fork")
		if child.Signal != 0 || child.Exit != 0 {
			t.Errorf("v%d: the child forked by %s ended with status %d, signal %d", version, thread, child.Exit, child.Signal)
		}
		if len(child.Lines) != len(lines) {
			t.Errorf("v%d: %d of %d calls came back in the child", version, len(child.Lines), len(lines))
		}
		for i, r := range child.Lines {
			if rc := r.RC(); rc != host.SystemError {
				t.Errorf("v%d: %s in the child: %v, want ncclSystemError", version, lines[i], rc)
			}
		}
		c.move(f)
		back.move(f)
	}
	if r, err := a.h.Call("main", "fd.cloexec", nil); err != nil || r.Str("leaky") != "" {
		t.Errorf("v%d: descriptors without CLOEXEC: %s (%v)", version, r.Str("leaky"), err)
	}
}
