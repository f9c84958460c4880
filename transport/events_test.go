package transport

import (
	"fmt"
	"slices"
	"testing"

	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/fastpath"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/wire"
)

// A fatal event ends the comms that it concerns on both sides, and no other.
func TestFatalEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		event  func(t *testing.T, a *process, s *Comm)
		cause  string
		spares bool // another comm of the device
	}{
		{"of the card", func(t *testing.T, _ *process, _ *Comm) { command(t, "event simA DEVICE_FATAL") }, "device fatal error", false},
		{"of a queue pair", func(t *testing.T, _ *process, s *Comm) {
			command(t, fmt.Sprintf("event simA QP_FATAL %d", numbersOf(s)[0][0]))
		}, "QP fatal error", true},
		{"of a completion queue", func(t *testing.T, _ *process, s *Comm) {
			command(t, fmt.Sprintf("event simA CQ_ERR %d", laneQP(t, s, 0).CQ))
		}, "CQ error", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b, s, r := simPair(t, nil)
			s2, r2 := pair(t, a, b)
			in := awaiting(t, r, 4096)
			c.event(t, a, s)
			drive(t, "the receive", in)
			if in.code != codePeer || b.log.Count("WARN", "gave the connection up", c.cause) == 0 {
				t.Errorf("code %d: %q", in.code, b.log.Lines())
			}
			out := send(s, register(t, s, buffer(t, 1), 1))
			if code := until(t, "the send", out); code != codeHost || a.log.Count("WARN", "asynchronous event on simA", c.cause) == 0 {
				t.Errorf("code %d: %q", code, a.log.Lines())
			}
			if c.spares {
				move(t, s2, r2, 1000)
			} else {
				eventually(t, "the other comm ends", func() bool { return s2.Over() && r2.Over() })
			}
			noneLeft(t, s, r, s2, r2)
		})
	}
}

// failCard has a card report a fatal error, and waits until one of the processes has heard it.
func failCard(t *testing.T, name string, processes ...*process) {
	t.Helper()
	heard := func() (n int) {
		for _, p := range processes {
			n += p.log.Count("WARN", "asynchronous event on "+name, "device fatal error")
		}
		return n
	}
	before := heard()
	command(t, "event "+name+" DEVICE_FATAL")
	eventually(t, "the event", func() bool { return heard() > before })
}

// A card that reported a fatal error carries no new connection until it works
// again, on whichever side it is; what does instead is said with the reason.
func TestFatalCardCarriesNothingNew(t *testing.T) {
	const fatal = "the card reported a fatal error"
	for _, c := range []struct {
		name, here, there string
		broken            string
		carries, says     string
	}{
		{"connecting side", "=simA,simC", "=simB,simD", "simA", "simC", "left out: simA: " + fatal},
		{"listening side", "=simA,simC", "=simB,simD", "simB", "simC", "left out: simA to its device 0 (direct): the peer refuses: simB: " + fatal},
		{"no other", "=simA", "=simB", "simA", "TCP", "goes over TCP, not by RDMA: simA: " + fatal},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, c.here, nil), startSim(t, c.there, nil)
			carrier := func() string {
				s, r := pair(t, a, b)
				defer r.Close()
				defer s.Close()
				move(t, s, r, 1000)
				if v, ok := s.Carrier().(*lanes.Carrier); ok {
					return v.Routes()[0].Local.Name
				}
				return "TCP"
			}
			eventually(t, "another carrier", func() bool { // a card that works at once is in use again after a second
				failCard(t, c.broken, a, b)
				return carrier() == c.carries
			})
			if a.log.Count("", c.says) == 0 {
				t.Errorf("%q", a.log.Lines())
			}
			eventually(t, "the card's return", func() bool { return carrier() == "simA" })
			noneLeft(t)
		})
	}
}

// A device made of several goes on with the members that work.
func TestFatalMemberIsLeftOut(t *testing.T) {
	a, b := startSim(t, "=simA,simC", nil), startSim(t, "=simB,simD", nil)
	a.fusedWith(t, 0, 1)
	b.fusedWith(t, 0, 1)
	members := func() (names []string) {
		s, r := pair(t, a, b)
		defer r.Close()
		defer s.Close()
		move(t, s, r, 1<<20)
		for _, p := range s.Carrier().(*lanes.Carrier).Pairs {
			names = append(names, p.Local.Name)
		}
		return names
	}
	eventually(t, "a connection without it", func() bool {
		failCard(t, "simA", a)
		return slices.Equal(members(), []string{"simC"})
	})
	if a.log.Count("INFO", "left out: simA: the card reported a fatal error") == 0 {
		t.Errorf("%q", a.log.Lines())
	}
	eventually(t, "its return", func() bool { return len(members()) == 2 })
	noneLeft(t)
}

// A port whose link is down is left out with that reason, and used again once it is up.
func TestPortThatIsDownIsLeftOut(t *testing.T) {
	a, b := startSim(t, "=simA,simC", nil), startSim(t, "=simB,simD", nil)
	for _, c := range []struct{ state, carries string }{{"down", "simC"}, {"up", "simA"}} {
		command(t, "link simA "+c.state)
		eventually(t, "the event", func() bool { return (a.Devices()[0].Verbs.Down() == "") == (c.state == "up") })
		s, r := pair(t, a, b)
		move(t, s, r, 1000)
		if got := s.Carrier().(*lanes.Carrier).Routes()[0].Local.Name; got != c.carries {
			t.Errorf("link %s: over %s", c.state, got)
		}
		noneLeft(t, s, r)
	}
	if a.log.Count("INFO", "left out: simA: the link is down") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
}

func TestEventsMayBeMutedByKnob(t *testing.T) {
	a, _, s, r := simPair(t, map[string]string{"NCCL_IB_RETURN_ASYNC_EVENTS": "0"})
	command(t, "event simA DEVICE_FATAL")
	eventually(t, "the log", func() bool { return a.log.Count("WARN", "device fatal error") == 1 })
	move(t, s, r, 1000)
	noneLeft(t, s, r)
}

// What is hit before it has a comm never gets one.
func TestFatalEventInTheHandshake(t *testing.T) {
	a := startSim(t, "=simA", nil)
	dev := a.devices.Found()[0]
	gid := dev.Verbs.GIDs()[0]
	v, err := a.lanes.Carrier(lanes.Options{For: a.ctx.comm(dev, fastpath.Send, "nobody", -1), Pairs: []route.Pair{{Local: dev.Verbs, GID: gid, PeerGID: gid}},
		PairAt: []int{0}, Tuning: route.Tuning{Width: 1}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var m wire.Offer
	if err := v.Offer(&m); err != nil {
		t.Fatal(err)
	}
	command(t, fmt.Sprintf("event simA QP_FATAL %d", m.Lanes[0].QPN))
	eventually(t, "the event", func() bool { return a.watch.Doomed(v) != nil })
	if c, err := comms.New(&a.ctx.comms, dev, fastpath.Send, "nobody", "", v); c != nil || report.CauseOf(err) != report.Host {
		t.Errorf("%v, %v", c, err)
	}
	v.Discard()
	noneLeft(t)
}
