package wire

import "fmt"

const (
	// MaxDevices bounds a peer's whole inventory.
	MaxDevices  = 256
	maxPerFrame = 24 // keeps what one frame makes a reader allocate small
	maxDevAddrs = 32
	maxDevGIDs  = 32
)

// GID is a port's global identifier, a RoCE or InfiniBand address.
type GID [16]byte

// Device is what the path solver may know of one device of the peer.
type Device struct {
	Index     uint16 // unique in the inventory; the same as hello's and a QPEnd's
	Port      uint8
	Kind      uint8 // provider: LaneTCP or LaneVerbs
	Link      uint8 // link layer: 0 none, 1 Ethernet, 2 InfiniBand
	Flags     uint8
	MTU       uint32
	SpeedMbps uint32
	ECE       uint32
	GUID      uint64
	Rail      int16
	Plane     int16
	Name      string
	Addrs     []Endpoint // port 0: a rendezvous address travels in the handle
	GIDs      []PortGID  // best first
}

// Inventory lists devices; a long list continues in further frames (FlagMore).
type Inventory struct {
	Header
	Devices []Device
}

func (d *Device) append(dst []byte) []byte {
	dst = le.AppendUint16(dst, d.Index)
	dst = append(dst, d.Port, d.Kind, d.Link, d.Flags)
	dst = le.AppendUint32(dst, d.MTU)
	dst = le.AppendUint32(dst, d.SpeedMbps)
	dst = le.AppendUint32(dst, d.ECE)
	dst = le.AppendUint64(dst, d.GUID)
	dst = le.AppendUint16(dst, uint16(d.Rail))
	dst = le.AppendUint16(dst, uint16(d.Plane))
	dst = appendText(dst, d.Name, maxName)
	addrs, gids := d.Addrs[:min(len(d.Addrs), maxDevAddrs)], d.GIDs[:min(len(d.GIDs), maxDevGIDs)]
	dst = append(dst, byte(len(addrs)), byte(len(gids)))
	for _, a := range addrs {
		dst = a.append(dst)
	}
	for _, g := range gids {
		dst = g.append(dst)
	}
	return dst
}

func (c *cursor) device() Device {
	d := Device{Index: c.u16(), Port: c.u8(), Kind: c.u8(), Link: c.u8(), Flags: c.u8(), MTU: c.u32(),
		SpeedMbps: c.u32(), ECE: c.u32(), GUID: c.u64(), Rail: int16(c.u16()), Plane: int16(c.u16())}
	d.Name = c.text(maxName)
	addrs, gids := int(c.u8()), int(c.u8())
	if addrs > maxDevAddrs || gids > maxDevGIDs {
		c.bad = true
	}
	for i := 0; i < addrs && !c.bad; i++ {
		d.Addrs = append(d.Addrs, c.endpoint())
	}
	for i := 0; i < gids && !c.bad; i++ {
		d.GIDs = append(d.GIDs, c.portGID())
	}
	return d
}

// Append writes m in as many frames as it needs.
func (m *Inventory) Append(dst []byte) []byte {
	var scratch []byte
	start, n := len(dst), 0
	open := func() {
		start, n = len(dst), 0
		dst = m.begin(dst, KindInventory)
		dst = append(dst, 0)
	}
	open()
	for i := range m.Devices[:min(len(m.Devices), MaxDevices)] {
		scratch = m.Devices[i].append(scratch[:0])
		if n == maxPerFrame || len(dst)-start+len(scratch) > MaxFrame {
			le.PutUint16(dst[start+6:], le.Uint16(dst[start+6:])|FlagMore)
			finish(dst, start)
			open()
		}
		dst = append(dst, scratch...)
		n++
		dst[start+HeaderSize] = byte(n)
	}
	return finish(dst, start)
}

// ParseInventory reads one frame of an inventory.
func ParseInventory(frame []byte) (Inventory, error) {
	h, c, err := open(frame, KindInventory)
	if err != nil {
		return Inventory{}, err
	}
	m := Inventory{Header: h}
	n := int(c.u8())
	if n > maxPerFrame {
		return Inventory{}, malformed("inventory", "%d devices in a frame", n)
	}
	for i := 0; i < n && !c.bad; i++ {
		m.Devices = append(m.Devices, c.device())
	}
	if !c.done() {
		return Inventory{}, malformed("inventory", "%d devices do not fill its %d bytes", n, len(frame))
	}
	return m, nil
}

// ReadInventory reads the frames of one inventory, a bounded number, from the
// first on, and the frame behind them.
func ReadInventory(rd *Reader, frame []byte) (all []Device, next []byte, err error) {
	for more := true; more; {
		m, err := ParseInventory(frame)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, m.Devices...)
		more = m.Flags&FlagMore != 0
		if len(all) > MaxDevices || more && len(m.Devices) == 0 {
			return nil, nil, fmt.Errorf("inventory of more than %d devices: %w", MaxDevices, ErrMalformed)
		}
		if frame, err = rd.Next(); err != nil {
			return nil, nil, err
		}
	}
	return all, frame, nil
}
