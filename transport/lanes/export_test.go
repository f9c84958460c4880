package lanes

import (
	"weft/internal/knob"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/route"
	"weft/transport/session"
	"weft/transport/wire"
)

// Growth is one that decides, and makes nothing.
type Growth struct{ *growth }

// NewGrowth is of a comm whose first lanes have these ends of the peer, and whose keys of it are known.
func NewGrowth(kind fastpath.Kind, pairs []route.Pair, at []int, have []wire.QPEnd, keys []uint32) Growth {
	v := &Carrier{Options: Options{Pairs: pairs, PairAt: at}}
	v.Kind = kind
	for i, e := range have {
		v.lanes = append(v.lanes, &lane{pair: &v.Pairs[at[i]], theirs: e})
	}
	g := &growth{v: v, m: &session.Member{Session: &session.Session{}}, keys: keys}
	g.plan()
	return Growth{g}
}

// Learn takes in the peer's ends, and returns those that the further lanes have then, by lane, with all keys and what was lost.
func (g Growth) Learn(keys []uint32, theirs []wire.QPEnd) (qpns, all []uint32, lost []string, err error) {
	err = g.learn(keys, theirs, "not offered")
	for _, l := range g.lanes {
		qpns = append(qpns, l.theirs.QPN)
	}
	return qpns, g.keys, g.lost, err
}

// Proves is who makes sure that the comm's pair of that number carries packets.
func (g Growth) Proves(pair int) (bool, error) { return g.proves(&g.v.Pairs[pair]) }

// RunsAs judges the answer to an offer of the first lanes.
func (g Growth) RunsAs(lanes []wire.QPEnd, later []wire.PortPair) error {
	return g.v.runsAs(lanes, later)
}

// NewKit is what a connection leaves that had so many of the lanes that it was to have.
func NewKit(dev *device.Device, pairs []route.Pair, at []int, lanes int, t route.Tuning, sl, tc uint8) *Kit {
	k := &Kit{device: dev, pairs: pairs, pairAt: at, sl: sl, tc: tc, inline: t.Inline, anyOrder: t.AnyOrder}
	for _, i := range at[:lanes] {
		k.lanes = append(k.lanes, &lane{pair: &pairs[i]})
	}
	return k
}

// Flushing is when a process with these knobs flushes, Striping how its lanes share messages.
func Flushing(k *knob.Values) string { return (&Shared{Knobs: k}).flushing() }

func Striping(k *knob.Values) string { return (&Shared{Knobs: k}).striping() }
