package transport

import (
	"testing"

	"weft/transport/wire"
)

// An offer and its withdrawal may be read at once: nothing is left of it.
func TestProbeThatIsWithdrawnAtOnce(t *testing.T) {
	a, b, s, r := probedPair(t, nil)
	x := b.working(t)[0]
	offer, on := x.offer, x.on
	a.watch.Remove(overRDMA(s)) // which ends its probe, and offers none
	none := func() bool { return a.toldOf(offer.Number) && len(othersThan(t, r)) == 0 }
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
		for _, x := range a.working(t) {
			n = x.number
			gone := wire.ProbeState{Number: n, State: wire.ProbeGone, Reason: "no connection of that class runs between these ports"}
			if err := a.watch.Serve(s.Member().Session, gone.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	n := ended()
	eventually(t, "another", func() bool {
		all := a.working(t)
		return len(all) == 1 && all[0].number != n
	})
	r.Close()
	eventually(t, "the connection's end", s.Member().ClosedWell)
	ended()
	eventually(t, "no probe", func() bool { return len(othersThan(t, s)) == 0 })
	if n := a.log.Count("", "probe"); n != 0 {
		t.Errorf("%d lines: %q", n, a.log.Lines())
	}
	noneLeft(t, s)
}
