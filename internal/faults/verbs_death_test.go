package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// slow is a link on which a transfer lasts long enough to be disturbed, GB/s.
const slow = 0.4

// begin starts the processes of tests that know them by their parts.
func (w *world) begin(name string, env ...string) *peer {
	w.t.Helper()
	device := "simA"
	if name == "survivor" {
		device = "simB"
	}
	return start(w.t, name, newest, append(w.env(device), env...)...)
}

// TestKilledOverRDMA is TestKilled with the bytes on queue pairs.
func TestKilledOverRDMA(t *testing.T) {
	t.Parallel()
	points := setting("WEFT_TEST_KILLS", 8)
	rng := rand.New(rand.NewPCG(2, uint64(points)))
	for i := range points {
		at := time.Duration(rng.IntN(60_000)) * time.Microsecond
		forked, victimSends := i%2 == 1, i%4 >= 2
		t.Run(fmt.Sprintf("%d_at_%v_forked_%v_sends_%v", i, at, forked, victimSends), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			var last *peer
			kill(t, func(name string, env ...string) *peer {
				last = w.begin(name, env...)
				return last
			}, at, forked, victimSends)
			if byRDMA(last, 0) != 1 {
				t.Errorf("the third process's comm is not by RDMA: %q", said(last, 0))
			}
		})
	}
}

// TestKilledAt kills a process in a given state of its comm: the survivor's next call,
// or the one that it waits in, ends in an error, one line names the peer, nothing is
// left, and the survivor goes on with others.
func TestKilledAt(t *testing.T) {
	t.Parallel()
	for _, forked := range []bool{false, true} {
		for _, at := range []struct {
			name  string
			sends bool // the survivor
			do    func(c *conn, survivor *peer, kill func()) error
		}{
			{"idle_sender_left", true, func(c *conn, s *peer, kill func()) error { kill(); return sendUntil(c) }},
			{"idle_receiver_left", false, func(c *conn, s *peer, kill func()) error { kill(); return receive(c) }},
			{"receive_waits", false, func(c *conn, s *peer, kill func()) error {
				time.AfterFunc(50*time.Millisecond, kill)
				return receive(c)
			}},
			{"sends_wait", true, func(c *conn, s *peer, kill func()) error {
				time.AfterFunc(50*time.Millisecond, kill)
				return sendUntil(c)
			}},
			{"sending", true, func(c *conn, s *peer, kill func()) error { return busy(c, s, kill) }},
			{"receiving", false, func(c *conn, s *peer, kill func()) error { return busy(c, s, kill) }},
		} {
			t.Run(fmt.Sprintf("%s_forked_%v", at.name, forked), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
				victim, survivor := w.begin("victim", "WEFT_TIMEOUT=2"), w.begin("survivor", "WEFT_TIMEOUT=2")
				tx, rx := victim, survivor
				if at.sends {
					tx, rx = survivor, victim
				}
				c := join(tx, rx, 16<<20)
				c.move(traffic{size: 100_000, count: 3, window: 2})
				if byRDMA(survivor, 0) != 1 {
					t.Fatalf("not by RDMA: %q", said(survivor, 0))
				}
				if forked {
					child, err := victim.h.Fork("main", time.Minute, true)
					must(t, err, "fork")
					defer killPID(child.PID)
				}
				err := at.do(c, survivor, victim.h.Kill)
				if err == nil || stuck(err) {
					t.Fatalf("the survivor: %v", err)
				}
				if code := host.Code(err); code != host.RemoteError && code != host.SystemError {
					t.Errorf("the survivor: %v", err)
				}
				mine, end := c.send, survivor.n.CloseSend
				if !at.sends {
					mine, end = c.recv, survivor.n.CloseRecv
				}
				must(t, end(mine), "close")
				w.atRest(survivor, simverbs.Objects{}, "the survivor's side of a dead process")
				third := w.begin("third", "WEFT_TIMEOUT=2")
				join(third, survivor, 16384).move(traffic{size: 4096, count: 3, window: 2})
				if byRDMA(third, 0) != 1 {
					t.Errorf("the next comm is not by RDMA: %q", said(third, 0))
				}
			})
		}
	}
}

// longer than T, and than whatever watches the lanes needs
const deathLimit = 20 * time.Second

// sendUntil sends what nobody receives, until that is an error.
func sendUntil(c *conn) error {
	r, err := c.tx.h.CallIn(deathLimit+patience, c.tx.n.Data, "net.isend", host.Args{"on", c.tx.n.As, "comm", c.send, "data", c.a, "size", 1000, "tag", 1, "mh", c.amh, "poll", 1, "limit", deathLimit})
	if err != nil {
		return err
	}
	_, err = c.tx.n.Wait(r.Ptr("req"), 1, deathLimit)
	return err
}

// receive waits for what nobody sends.
func receive(c *conn) error {
	q, err := c.rx.n.Irecv(c.recv, []host.Recv{{Data: c.b, Size: 1000, Tag: 1, MH: c.bmh}}, "poll", 1)
	if err != nil {
		return err
	}
	_, err = c.rx.n.Wait(q, 1, deathLimit)
	return err
}

// busy kills in the middle of a transfer.
func busy(c *conn, survivor *peer, kill func()) error {
	f := traffic{size: 4 << 20, count: 40, window: 4, limit: deathLimit} // 0.4 s
	r, s := c.receiving(f), c.sending(f)
	time.AfterFunc(100*time.Millisecond, kill)
	_, errS := s.Wait()
	_, errR := r.Wait()
	if survivor == c.tx {
		return errS
	}
	return errR
}

// TestLeavingOverRDMA closes with receives that the receiver has not looked at, and
// leaves: every byte is there.
func TestLeavingOverRDMA(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"exit", "_exit"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
			rx := w.begin("survivor")
			closeInFlight(t, w.begin("sender"), rx, how)
			for _, size := range []int64{100, 1 << 20} {
				closeUnread(t, w.begin("sender"), rx, how, size)
			}
			if by := byRDMA(rx, 0); by != 3 {
				t.Errorf("%d of 3 comms are by RDMA: %q", by, said(rx, 0))
			}
		})
	}
}

// TestLeavingWithTheCause has a process leave with the first error that it gets, as
// hosts do: its peer hears what happened, and not that a connection has ended.
func TestLeavingWithTheCause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, fault, how, says string }{
		{"request", "error simA/simA 3 LOC_PROT_ERR lost %d", "exit", "gave the connection up: simA: a data write ended LOC_PROT_ERR"},
		{"card", "event simA/simA DEVICE_FATAL", "exit", "gave the connection up: simA: device fatal error"},
		{"request, no exit handlers", "error simA/simA 3 LOC_PROT_ERR lost %d", "_exit", "gave the connection up: simA: a data write ended LOC_PROT_ERR"},
		{"card, no exit handlers", "event simA/simA DEVICE_FATAL", "_exit", "gave the connection up: simA: device fatal error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
			leaver, survivor := w.begin("leaver"), w.begin("survivor")
			x := join(leaver, survivor, 16<<20)
			f := traffic{size: 1 << 20, count: 1 << 20, window: 2}
			r, s := x.receiving(f), x.sending(f)
			if strings.Contains(c.fault, "%d") { // not the probe's, which may be in the making
				number := firstQP(leaver)
				if number == 0 {
					t.Fatalf("no queue pair is named: %q", said(leaver, 0))
				}
				c.fault = fmt.Sprintf(c.fault, number)
			}
			w.command(leaver, c.fault)
			if _, err := s.Wait(); err == nil || stuck(err) {
				t.Fatalf("the one that leaves: %v", err)
			}
			must(t, leaver.h.Exit(c.how, 1), "leaving")
			if _, err := r.Wait(); err == nil || stuck(err) {
				t.Fatalf("the survivor: %v", err)
			}
			if !slices.ContainsFunc(said(survivor, 0), func(l string) bool { return strings.Contains(l, c.says) }) {
				t.Errorf("%q", said(survivor, 0))
			}
		})
	}
}

// TestStoppedOverRDMA stops each side for longer than T and than any watch waits.
func TestStoppedOverRDMA(t *testing.T) {
	t.Parallel()
	still := duration("WEFT_TEST_STOP", 8*time.Second)
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{Rate: slow}, simverbs.Device{Rate: slow})
			a, b := w.begin("rank 0", "WEFT_TIMEOUT=2"), w.begin("survivor", "WEFT_TIMEOUT=2")
			stopped(t, a, b, who, still)
			if x, y := byRDMA(a, 0), byRDMA(b, 0); x != 2 || y != 2 {
				t.Errorf("%d and %d of 2 comms are by RDMA: %q", x, y, said(a, 0))
			}
		})
	}
}

// TestForkOverRDMA is TestFork with the bytes on queue pairs.
func TestForkOverRDMA(t *testing.T) {
	w := newWorld(t, simverbs.Device{}, simverbs.Device{})
	a := w.begin("parent")
	forking(t, a, w.begin("survivor"), newest)
	if byRDMA(a, 0) != 2 {
		t.Errorf("not by RDMA: %q", said(a, 0))
	}
}
