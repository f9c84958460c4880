package port

import (
	"slices"

	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
)

// Device is one port that carries RDMA. What the tables report stands in
// rdma.Device and never changes; GIDs and the port's state do.
//
// Addrs are the addresses behind the port's GIDs, best first, and may be empty
// on InfiniBand. Name is the library's, with ":port" for further ports of one
// card, and "_dma" for a card's data-direct path to GPU memory.
type Device struct {
	rdma.Device
	InfiniBand bool   // else Ethernet
	NIC        string // the library's name, as NCCL_IB_HCA and peers' messages use it

	card     *card.Card
	domains  *mr.Domains
	rules    *gid.Rules
	number   uint8  // on its card, from 1
	function string // real path of the PCI function
	direct   bool   // it stands for its card's data-direct path to GPU memory
	gidWhy   string // why the first GID was the best at discovery

	now *state // which both views of a port share
}

// GIDs are the usable GIDs, best first.
func (d *Device) GIDs() []gid.GID {
	d.now.Lock()
	defer d.now.Unlock()
	return slices.Clone(d.now.gids)
}

// Down says why the port cannot be used at the moment, "" while it can.
func (d *Device) Down() string {
	if why := d.card.Down(); why != "" {
		return why
	}
	d.now.Lock()
	defer d.now.Unlock()
	return d.now.down
}

// PathMTU is the port's active MTU in bytes.
func (d *Device) PathMTU() int {
	d.now.Lock()
	defer d.now.Unlock()
	return ibv.MTUBytes(d.now.port.ActiveMTU)
}

// MaxMessage is the longest work request that the port carries.
func (d *Device) MaxMessage() uint32 {
	d.now.Lock()
	defer d.now.Unlock()
	return d.now.port.MaxMessage
}

// Attr is what the card says of the port.
func (d *Device) Attr() ibv.PortAttr {
	d.now.Lock()
	defer d.now.Unlock()
	return d.now.port
}

// Card is the port's.
func (d *Device) Card() *card.Card { return d.card }

// Number is the port's on its card, from 1.
func (d *Device) Number() uint8 { return d.number }

// SamePort reports whether two devices stand for one port.
func (d *Device) SamePort(o *Device) bool { return d.now == o.now }

// AcquirePD returns the protection domain of what is made on the device; every
// holder releases it.
func (d *Device) AcquirePD() (*mr.PD, error) { return d.domains.Acquire(d.direct) }

// GPUMemory says whether the device reaches GPU memory, by which way, or why not.
func (d *Device) GPUMemory() (kinds rdma.MemKind, why string) { return d.domains.GPUMemory(d.direct) }

// AnyOrder says why the port has no queue pairs with so many receives whose
// requests arrive in any order; nil: it has.
func (d *Device) AnyOrder(receives int) error { return d.card.AnyOrder(d.Name, receives) }
