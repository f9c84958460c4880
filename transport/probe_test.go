package transport

import (
	"errors"
	"io"
	"strings"
	"testing"

	"weft/internal/conns"
	"weft/transport/lanes"
	"weft/transport/session"
	"weft/transport/wire"
)

// An offer and its withdrawal may be read at once: nothing is left of it.
func TestProbeThatIsWithdrawnAtOnce(t *testing.T) {
	a, b, s, r := probedPair(t, nil)
	x, on := a.working()[0], r.Member().Session
	offer := wire.ProbeOffer{Number: x.Number, SL: x.Key.Class.SL, TC: x.Key.Class.TC, End: x.End}
	a.watch.Remove(s.Carrier().(*lanes.Carrier)) // which ends its probe, and offers none
	none := func() bool { return len(b.watch.Probes()) == 0 }
	for range 20 {
		eventually(t, "no probe", none)
		offer.Number++
		gone := wire.ProbeState{Number: offer.Number, State: wire.ProbeGone, Reason: "unused"}
		for _, m := range [][]byte{offer.Append(nil), gone.Append(nil)} {
			if err := b.watch.Serve(on, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "no probe", none)
	noneLeft(t, s, r)
}

// The peer ends a probe once, because it has no connection yet, or none any more: neither is news.
func TestProbeThatThePeerEndsIsNoNews(t *testing.T) {
	a, _, s, r := probedPair(t, nil)
	ended := func() uint32 {
		var n uint32
		for _, x := range a.working() {
			n = x.Number
			gone := wire.ProbeState{Number: n, State: wire.ProbeGone, Reason: "no connection of that class runs between these ports"}
			if err := a.watch.Serve(s.Member().Session, gone.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	n := ended()
	eventually(t, "another", func() bool {
		all := a.working()
		return len(all) == 1 && all[0].Number != n
	})
	r.Close()
	eventually(t, "the connection's end", s.Member().ClosedWell)
	ended()
	eventually(t, "no probe", func() bool { return len(a.watch.Probes()) == 0 })
	if n := a.log.Count("probe"); n != 0 {
		t.Errorf("%d lines: %q", n, a.log.Lines())
	}
	noneLeft(t, s)
}

// What a peer says about probes is checked against what it may say.
func TestProbeMessagesAreChecked(t *testing.T) {
	end := wire.QPEnd{QPN: 17, MTU: 5, GID: wire.PortGID{Addr: wire.GID{0xfd, 15: 1}, Type: 2, Bits: 64}}
	offer, answer := &wire.ProbeOffer{Number: 7, End: end}, &wire.ProbeAnswer{Number: 7, End: end}
	works := &wire.ProbeState{Number: 7, State: wire.ProbeWorks}
	gone := &wire.ProbeState{Number: 7, State: wire.ProbeGone, Reason: "no room"}
	silent := &wire.ProbeState{Number: 7, State: wire.ProbeSilent, Reason: "no answer"}
	a := start(t, nil)
	for _, c := range []struct {
		name   string
		m      session.Frame
		active bool // who gets it opened the session
		legal  bool
	}{
		{"offer", offer, false, true},
		{"offer of the listening side", offer, true, false},
		{"answer to nothing", answer, true, true},
		{"answer of the connecting side", answer, false, false},
		{"works", works, false, true},
		{"works, says the listening side", works, true, false},
		{"gone", gone, false, true},
		{"gone there", gone, true, true},
		{"silent", silent, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, far := conns.Pair(t)
			s := a.sessions.New(k, &wire.Hello{Build: "test"}, nil, c.active)
			if err := a.watch.Serve(s, c.m.Append(nil)); (err == nil) != c.legal || err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Error(err)
			}
			k.Close()
			b, err := io.ReadAll(far)
			if err != nil {
				t.Fatal(err)
			}
			if said := string(b); (c.m == offer && c.legal) != strings.Contains(said, "no connection of that class runs between these ports") {
				t.Errorf("it says %q", said)
			}
			if len(a.watch.Probes()) != 0 {
				t.Error("it made a probe")
			}
		})
	}
}
