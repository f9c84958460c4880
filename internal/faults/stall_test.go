package faults

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/simverbs"
)

// TestStall has hosts with WEFT_PROFILE=stall wait for one that is stopped, or that has not begun its part, and then go on:
// each says once why it waits and once that it moves again, and the one that was stopped says nothing.
func TestStall(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"TCP", "RDMA"} {
		for _, c := range []struct {
			name    string
			tx      bool // who is stopped, or begins late
			stopped bool
			says    []string // of the other
		}{
			{"receiver_stopped", false, true, []string{"stall: send to ", "does not reply, though its machine does: it is stopped or frozen"}},
			{"sender_stopped", true, true, []string{"stall: receive from ", "does not reply, though its machine does: it is stopped or frozen"}},
			{"receiver_late", false, false, []string{"stall: send to ", "its NCCL has posted no receive; that process runs and waits for nobody"}},
			{"sender_late", true, false, []string{"stall: receive from ", "its NCCL has sent nothing; that process runs and waits for nobody"}},
		} {
			t.Run(network+"_"+c.name, func(t *testing.T) {
				t.Parallel()
				a, b, stop := stallHosts(t, network)
				l := join(a, b, 16<<20)
				l.move(traffic{size: 100_000, count: 3, window: 2})
				f := traffic{size: 1 << 20, count: 40_000, window: 4}
				victim, other := b, a
				first, second := l.sending, l.receiving
				if c.tx {
					victim, other = a, b
					first, second = l.receiving, l.sending
				}
				if c.stopped {
					first(f)
					second(f) // both end with their hosts
					must(t, stop(victim.h.PID), "stop")
					says(t, other, c.says...)
					must(t, victim.h.Signal(unix.SIGCONT), "continue")
				} else {
					f.count = 10
					early := first(f)
					says(t, other, c.says...)
					_, err := second(f).Wait()
					must(t, err, "who is late")
					_, err = early.Wait()
					must(t, err, "who waited")
				}
				says(t, other, c.says[0], "moves again, after")
				if lines := stalls(victim); len(lines) != 0 {
					t.Errorf("the victim says %q", lines)
				}
			})
		}
	}
}

// TestStallOfAPath has a port lose all packets: each side knows that both have done their part. Slow as it was before, the path
// was no stall.
func TestStallOfAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
	env := []string{"WEFT_PROFILE=stall", "WEFT_STALL_SECONDS=1", "WEFT_TIMEOUT=100"} // which finds the silence later
	a, b := w.start("simA", newest, env...), w.start("simB", newest, env...)
	l := join(a, b, 16<<20)
	l.move(traffic{size: 4 << 20, count: 200, window: 4})
	for _, p := range []*peer{a, b} {
		if lines := stalls(p); len(lines) != 0 {
			t.Errorf("slow: %q", lines)
		}
	}
	f := traffic{size: 4 << 20, count: 40_000, window: 4}
	l.receiving(f)
	l.sending(f) // both end with their hosts
	w.command(a, "blackhole simA/simA tx")
	says(t, a, "stall: send to ", "its NCCL waits for it, and what was sent is not acknowledged; check the path")
	says(t, b, "stall: receive from ", "its NCCL has sent it, and it has not come; check the path")
}

// stallHosts are two that watch.
func stallHosts(t *testing.T, network string) (a, b *peer, stop func(pid int) error) {
	env := []string{"WEFT_PROFILE=stall", "WEFT_STALL_SECONDS=2"} // long enough that a busy machine makes none
	if network == "TCP" {
		return start(t, "sender", newest, env...), start(t, "receiver", newest, env...), func(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }
	}
	w := newWorld(t, simverbs.Device{}, simverbs.Device{})
	return w.start("simA", newest, env...), w.start("simB", newest, env...), w.Stop
}

// stalls are the lines about them.
func stalls(p *peer) (lines []string) {
	for _, l := range said(p, 0) {
		if strings.Contains(l, "stall: ") {
			lines = append(lines, l)
		}
	}
	return lines
}

// says waits for a line with all these parts.
func says(t *testing.T, p *peer, parts ...string) {
	t.Helper()
	settle(t, fmt.Sprintf("a line with %q", parts), func() (string, bool) {
		for _, l := range stalls(p) {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(l, part)
			}
			if all {
				return l, true
			}
		}
		return strings.Join(said(p, max(0, marked(p)-4)), "\n"), false
	})
}
