package stall

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

// comm is a receive that waits, for a peer that cannot be asked, until it is told otherwise.
type comm struct {
	report.Recorder
	member *session.Member
	look   fastpath.Look
	asks   bool
	over   bool
	broken bool
	sends  bool
	down   string
	cabled bool

	packets, again uint64
}

func waiting(peer int) *comm {
	s := &session.Session{Peer: wire.Hello{Host: "node", PID: uint32(peer), Process: wire.ProcessID{byte(peer), byte(peer >> 8)}}}
	return &comm{member: &session.Member{Session: s, ID: 1}, asks: true,
		look: fastpath.Look{Begun: 1, Outstanding: 1, Incomplete: 1, Group: 1, Next: 2}}
}

func (c *comm) Sends() bool { return c.sends }

func (c *comm) Sent() (packets, again uint64) { return c.packets, c.again }

func (c *comm) Look() fastpath.Look {
	if c.asks {
		c.look.Rounds++
	}
	return c.look
}

func (c *comm) Progress() uint64 { return 0 }

func (c *comm) Standing() *session.Session {
	if c.over {
		return nil
	}
	return c.member.Session
}

func (c *comm) Broken() bool { return c.broken }

func (c *comm) Cabled() bool { return c.cabled }

func (c *comm) OutOfUse() string { return c.down }

func (c *comm) Member() *session.Member { return c.member }

func (c *comm) Devices() (own, peer string) { return "eth0", "eth1" }

func (c *comm) Log() report.Logger { return &c.Recorder }

func (c *comm) lines() int { return c.Count("WARN stall: ") }

// clock has a monitor look at comms.
type clock struct {
	*Monitor
	now time.Time
	all []Subject
}

func newClock(all ...*comm) *clock {
	c := &clock{Monitor: New(Config{Log: report.Discard{}, Least: 4 * time.Second}), now: time.Now()}
	for _, x := range all {
		c.all = append(c.all, x)
	}
	c.turn(c.now, c.all)
	return c
}

// passes lets time pass, in looks.
func (c *clock) passes(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(c.pace.every)
		c.turn(c.now, c.all)
	}
}

// A wait is told when it has lasted, again each time it has lasted twice as long, and when it is over.
func TestLinesOfAWait(t *testing.T) {
	x := waiting(17)
	c := newClock(x)
	for _, at := range []struct {
		passes time.Duration
		lines  int
	}{{3500 * time.Millisecond, 0}, {time.Second, 1}, {3 * time.Second, 1}, {2 * time.Second, 2}, {6 * time.Second, 2}, {2 * time.Second, 3}, {600 * time.Second, 8}} {
		if c.passes(at.passes); x.lines() != at.lines {
			t.Errorf("%v later: %q", at.passes, x.Lines())
		}
	}
	if x.Count("WARN stall: receive from node:17 (eth0 <- eth1) has waited 4s: ") != 1 {
		t.Errorf("%q", x.Lines())
	}
	x.look.Done, x.look.Incomplete, x.look.Outstanding = 1, 0, 0
	c.passes(20 * time.Second)
	if x.lines() != 9 || x.Count("WARN stall: receive from node:17 (eth0 <- eth1) moves again, after 10m") != 1 {
		t.Errorf("%q", x.Lines())
	}
}

// What looks like a wait and is none.
func TestNoWaits(t *testing.T) {
	for _, s := range []struct {
		name string
		to   func(c *clock, x *comm)
	}{
		{"its process stood still itself", func(c *clock, x *comm) {
			for range 10 {
				c.passes(3 * time.Second)
				c.now = c.now.Add(time.Minute)
				c.turn(c.now, c.all)
			}
		}},
		{"its host does not ask", func(c *clock, x *comm) { x.asks = false; c.passes(time.Minute) }},
		{"it is closed", func(c *clock, x *comm) { c.passes(3 * time.Second); x.over = true; c.passes(time.Minute) }},
		{"it is forgotten", func(c *clock, x *comm) { c.passes(3 * time.Second); c.all = nil; c.passes(time.Minute) }},
		{"it is slow", func(c *clock, x *comm) {
			for range 20 {
				c.passes(3 * time.Second)
				x.look.Parts++
			}
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			x := waiting(1)
			c := newClock(x)
			s.to(c, x)
			if x.lines() != 0 || s.name != "it is slow" && len(c.scene.waits) != 0 {
				t.Errorf("%q, %d waits", x.Lines(), len(c.scene.waits))
			}
		})
	}
}

// However many peers are waited for, a look has few lines.
func TestManyWaits(t *testing.T) {
	var all []*comm
	for i := range 1000 {
		all = append(all, waiting(i), waiting(i)) // two to each
	}
	lines := func() (n int) {
		for _, x := range all {
			n += x.lines()
		}
		return n
	}
	c := newClock(all...)
	c.passes(5 * time.Second)
	if n := lines(); n != linesMost+1 {
		t.Errorf("%d lines", n)
	}
	for _, x := range all {
		x.look = fastpath.Look{Begun: 1, Done: 1, Rounds: x.look.Rounds}
	}
	c.passes(time.Second)
	if n := lines(); n != 2*(linesMost+1) {
		t.Errorf("%d lines", n)
	}
	said := fmt.Sprintf("stall: %d more waits on %d connections, not listed", 1000-linesMost, 2*(1000-linesMost))
	found := 0
	for _, x := range all {
		found += x.Count("WARN", said) + x.Count("WARN", "with 1 more connection of these devices")
	}
	if found != 1+linesMost {
		t.Errorf("%d lines tell of more connections", found)
	}
}

// A device without a link is named, and not who is at the other end of it. What the doctor looks into ends in its rules.
func TestReasons(t *testing.T) {
	const down = "eth0: the link is down"
	dead := verdict{kind: silent, root: wire.RootDown, who: "node:1"}
	path := verdict{kind: undelivered, root: wire.RootPath}
	for _, c := range []struct {
		down   string
		cabled bool
		v      verdict
		text   string
	}{
		{down, false, path, "nothing passes here: eth0: the link is down"},
		{down, true, path, "nothing passes here: eth0: the link is down [WEFT-030 WEFT-035]"},
		{down, false, dead, "nothing passes here: eth0: the link is down"},
		{down, false, verdict{kind: silent, root: wire.RootSilent}, "that process does not reply, though its machine does: it is stopped or frozen, or gets no CPU"},
		{"", true, dead, "that process does not reply, and neither does its machine: that is down or stands still, or the network to it is cut"},
		{"", false, path, "its NCCL has sent it, and it has not come; check the path between the two devices [WEFT-115 WEFT-143 WEFT-165]"},
		{"", true, path, "its NCCL has sent it, and it has not come; check the path between the two devices [WEFT-130 WEFT-135 WEFT-165]"},
	} {
		x := waiting(1)
		x.down, x.cabled = c.down, c.cabled
		if got := (&wait{of: x, verdict: c.v, inquiry: inquiry{why: wire.WaitSend}}).reason(); got != c.text {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Who asks a process of which a connection has failed hears that; of one that waits for somebody, whom it waits for.
func TestBrokenIsTold(t *testing.T) {
	x, y := waiting(1), waiting(2)
	x.over, x.broken, y.over = true, true, true
	c := newClock(x, y)
	c.looked = time.Now() // Serve has no clock of its own
	s := &session.Session{Peer: wire.Hello{Host: "node", PID: 3, Process: wire.ProcessID{3}}}
	if m := c.reply(s, 9, nil); m.Why != wire.WaitNone || m.Root != wire.RootBroken || m.RootWho != "the connection from node:1 to :0" {
		t.Errorf("%+v", m)
	}
	y.over = false
	c.passes(time.Second + 2*c.pace.every)
	c.looked = time.Now()
	if m := c.reply(s, 9, nil); m.Why != wire.WaitSend || m.For != "node:2" || m.Root == wire.RootBroken {
		t.Errorf("%+v", m)
	}
}
