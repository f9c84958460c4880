package mr

import (
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// Region is one use of a registration. Keys are the card's.
type Region struct {
	LKey, RKey uint32
	How        string // which rung of the ladder took it: "relaxed ordering", "plain", "DMA-BUF", ...

	pd    *PD
	entry *entry
}

// Register makes the buffer usable by the card. A range that is registered
// already, and alike, costs nothing but a count.
func (pd *PD) Register(b *memory.Buffer, access ibv.Access) (*Region, error) {
	s := spanOf(b)
	k := key{span: s, access: access, kind: b.Kind, strict: b.Strict, dmabuf: b.FD >= 0, file: b.File}
	c := &pd.cache
	c.Lock()
	defer c.Unlock()
	e := c.entries[k]
	if e == nil {
		keys, how, err := pd.register(b, s, access)
		if err != nil {
			return nil, err
		}
		e = &entry{key: k, keys: keys, how: how}
		c.entries[k] = e
		fail.Pinned.Add(int64(s.end - s.start))
	}
	e.refs++
	return &Region{LKey: e.keys.LKey, RKey: e.keys.RKey, How: e.how, pd: pd, entry: e}, nil
}

// Release ends this use; the last one of the range deregisters it. Once it returns
// the card touches no page of it that no other registration has.
func (r *Region) Release() error {
	pd := r.pd
	pd.cache.Lock()
	defer pd.cache.Unlock()
	e := r.entry
	if e == nil || e.refs == 0 {
		return report.Errorf(report.Internal, "ibv_dereg_mr", "a registration was released twice").On(pd.card.Name)
	}
	r.entry = nil
	if e.refs--; e.refs > 0 {
		return nil
	}
	delete(pd.cache.entries, e.key)
	fail.Pinned.Add(int64(e.key.start) - int64(e.key.end))
	if errno := pd.card.Lib.DeregMR(e.keys.MR); errno != 0 {
		return fail.Call("ibv_dereg_mr", pd.card.Name, errno, "%d bytes at %#x", e.key.end-e.key.start, e.key.start)
	}
	return nil
}
