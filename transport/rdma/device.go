package rdma

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Limits that every device of weft reports, whatever its provider.
const (
	MaxComms = 65536   // what NCCL's own sockets report; nothing here is sized by it
	MaxRecvs = 8       // receives in one group: the request slot reserves that many
	MaxBytes = 1 << 30 // one message, and one collective call: sizes stay far from 2^31

	NoID = -1 // a rail or plane that nobody named
)

// Device is one network interface as the host's tables describe it. The
// transport never changes one after discovery.
type Device struct {
	Index     int    // position in the list that NCCL sees
	Name      string // unique in the list
	PCIPath   string // real path below sysfs; "" for a virtual interface
	GUID      uint64
	SpeedMbps int
	Port      int
	MaxComms  int
	MaxRecvs  int
	Latency   float32
	Pointers  MemKind // every kind of memory that regMr accepts
	Flush     bool    // what arrives in GPU memory is seen by the GPU only after a flush, whatever GPU it is
	MTU       int

	IfIndex int
	Addrs   []netip.Prefix // first the address that is advertised first; never empty
	RailID  int16
	PlaneID int16
}

// Addr is the i-th address with its zone: a link-local IPv6 address means
// nothing without the interface it lives on.
func (d *Device) Addr(i int) netip.Addr { return Scoped(d.Addrs[i].Addr(), d.IfIndex) }

// Scoped adds the zone of interface ifIndex to a link-local IPv6 address and
// returns every other address as it is.
func Scoped(a netip.Addr, ifIndex int) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() && ifIndex > 0 {
		return a.WithZone(strconv.Itoa(ifIndex))
	}
	return a
}

// Reaches reports whether a lies in a subnet of the device.
func (d *Device) Reaches(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range d.Addrs {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func (d *Device) String() string {
	if len(d.Addrs) == 0 {
		return d.Name
	}
	return fmt.Sprintf("%s:%s", d.Name, d.Addrs[0].Addr())
}
