package lanes

import (
	"errors"

	"weft/transport/memory"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// onPort is what a comm has on one local port.
type onPort struct {
	device *port.Device
	gid    gid.GID
	slot   int // among those that carry the asked device's comms
	pd     *mr.PD
	ring   *mr.Region // of the slab
	proof  *mr.Region // of the memory that proofs write from and to
	cq     *qp.CQ
	loop   *qp.QP // connected to itself; nil: none yet, or nothing is to be flushed. Protected by life
	looped bool   // the executor has it, or gets it with the lanes. Protected by life
}

// portOn finds what the comm has on a port; nil: nothing.
func portOn(ports []*onPort, dev *port.Device) *onPort {
	for _, p := range ports {
		if p.device == dev {
			return p
		}
	}
	return nil
}

// register has the card take what the peer writes to.
func (p *onPort) register(shared *memory.Buffer) (err error) {
	if p.ring, err = p.pd.Register(shared, ibv.AccessCTS); err == nil {
		p.proof, err = p.pd.Scratch()
	}
	return err
}

func (p *onPort) unregister() (err error) {
	for _, r := range []*mr.Region{p.ring, p.proof} {
		if r != nil {
			err = errors.Join(err, r.Release())
		}
	}
	return err
}

// unqueue destroys the queue pairs of the port, of those that lanes have, and their
// completion queue.
func (p *onPort) unqueue(lanes []*lane) (err error) {
	for _, l := range lanes {
		if l.port == p && l.qp != nil {
			err = errors.Join(err, l.qp.Close())
			l.qp = nil
		}
	}
	if p.loop != nil {
		err = errors.Join(err, p.loop.Close())
		p.loop = nil
	}
	if p.cq != nil {
		err = errors.Join(err, p.cq.Close())
		p.cq = nil
	}
	return err
}

// ringKeys are the peer's keys on some ports, by slot.
func ringKeys(ports []*onPort) (keys []uint32) {
	for _, p := range ports {
		for len(keys) <= p.slot {
			keys = append(keys, 0)
		}
		keys[p.slot] = p.ring.RKey
	}
	return keys
}

// target is what one side of a comm has for the other to write into.
type target struct {
	shared uint64   // address of the range
	keys   []uint32 // its keys, by slot
}
