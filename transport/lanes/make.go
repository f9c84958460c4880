package lanes

import (
	"slices"

	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/route"
)

// Carrier makes one side of a comm: slab, registered ring, completion queues and its
// first lanes, in INIT; lane i is to run over pairs[pairAt[i]]. If again is not nil
// these lanes are taken from it. When it fails nothing is left, of again neither.
func (s *Shared) Carrier(o Options, first int, again *Kit) (*Carrier, error) {
	v := &Carrier{shared: s, Options: o, cookie: o.Reserve(), always: s.flushing() == "always"}
	v.further.init()
	if err := v.make(first, again); err != nil {
		v.Discard()
		return nil, err
	}
	s.Watch.Add(v)
	return v, nil
}

func (v *Carrier) make(first int, again *Kit) (err error) {
	if again != nil {
		if err := v.adopt(again); err != nil {
			return err
		}
	}
	v.fp, err = fastpath.New(fastpath.Options{Kind: v.Kind, Device: uint32(v.Device.Index), Cookie: v.cookie, Cuts: v.Cuts, Events: v.NetEvents})
	if err != nil {
		return err
	}
	addr, size := v.fp.Shared()
	if v.slab, err = memory.NewBuffer(addr, size, rdma.MemHost); err != nil {
		return err
	}
	v.slab.Strict = true
	for _, p := range v.ports {
		if err = p.register(v.slab); err != nil {
			return err
		}
	}
	for _, at := range v.PairAt[len(v.lanes):first] {
		l := &lane{pair: &v.Pairs[at]}
		if l.port = portOn(v.ports, l.pair.Local); l.port == nil {
			l.port = &onPort{device: l.pair.Local, gid: l.pair.GID, slot: -1}
			v.ports = append(v.ports, l.port)
			if err := v.openPort(l.port); err != nil {
				return &PairError{l.pair, err}
			}
		}
		v.lanes = append(v.lanes, l)
	}
	v.routed(v.lanes)
	for _, p := range v.ports {
		if p.cq != nil {
			continue
		}
		err := v.makeQueues(p, v.lanes, v.PairAt[first:])
		if err == nil && !v.shared.Lazy() && v.flushes(p.device) {
			p.looped = true
			err = v.makeLoop(p)
		}
		if err != nil {
			return &PairError{v.pairBy(p), err}
		}
	}
	return nil
}

// pairBy is the first pair that begins at a port.
func (v *Carrier) pairBy(p *onPort) *route.Pair {
	return &v.Pairs[slices.IndexFunc(v.Pairs, func(pair route.Pair) bool { return pair.Local == p.device })]
}

// Open says which comm v carries; it fails if a fatal event came before.
func (v *Carrier) Open(c carrier.Comm) error {
	v.comm = c
	return v.shared.Watch.Carries(v, c)
}

// Discard ends a carrier that no comm has.
func (v *Carrier) Discard() {
	if v.fp != nil {
		v.fp.Close()
	}
	v.destroy()
}
