package wire

import "slices"

// MaxLanes is the most lanes of a comm, MaxStreams the most streams of a tcp lane.
const (
	MaxLanes   = 32
	MaxStreams = 64
)

// The kinds of lanes, and of the devices that carry them.
const (
	LaneTCP   = 1 // TCP streams
	LaneVerbs = 2 // a queue pair
)

// Lane is one lane as the listening side wants it: first the streams, then the
// ports that its device is made of, for RDMA.
type Lane struct {
	Kind    uint8
	Streams uint8 // the listener's count, as NCCL's sockets have it
	Device  uint16
	MTU     uint32
}

// Lanes follows the listening side's hello on a comm's first stream. NoRDMA is why
// there are no lanes of that kind; "" when there are. Stash is how many bytes the
// listening side keeps of messages that come ahead of their receives over TCP.
type Lanes struct {
	Header
	Stash  uint32
	Lanes  []Lane
	NoRDMA string
}

// Append writes m.
func (m *Lanes) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindLanes)
	dst = append(le.AppendUint32(dst, m.Stash), byte(len(m.Lanes)))
	for _, l := range m.Lanes {
		dst = append(dst, l.Kind, l.Streams)
		dst = le.AppendUint16(dst, l.Device)
		dst = le.AppendUint32(dst, l.MTU)
	}
	return finish(appendText(dst, m.NoRDMA, maxReason), start)
}

// ParseLanes reads a lanes message.
func ParseLanes(frame []byte) (Lanes, error) {
	h, c, err := open(frame, KindLanes)
	if err != nil {
		return Lanes{}, err
	}
	m := Lanes{Header: h, Stash: c.u32()}
	n := int(c.u8())
	if n == 0 || n > MaxLanes {
		return Lanes{}, malformed("lanes", "%d lanes", n)
	}
	m.Lanes = make([]Lane, 0, n)
	for range n {
		l := Lane{Kind: c.u8(), Streams: c.u8(), Device: c.u16(), MTU: c.u32()}
		if l.Streams == 0 || l.Streams > MaxStreams {
			c.bad = true
		}
		m.Lanes = append(m.Lanes, l)
	}
	m.NoRDMA = c.text(maxReason)
	if !c.done() {
		return Lanes{}, malformed("lanes", "%d lanes do not fill its %d bytes", n, len(frame))
	}
	if k := m.Lanes[0].Kind; k != LaneTCP {
		return Lanes{}, malformed("lanes", "the first is of kind %d", k)
	}
	for i, l := range m.Lanes[1:] {
		twice := slices.ContainsFunc(m.Lanes[1:1+i], func(o Lane) bool { return o.Device == l.Device })
		if l.Kind != LaneVerbs || i == MaxSlots || twice {
			return Lanes{}, malformed("lanes", "one of kind %d on device %d after %d", l.Kind, l.Device, i)
		}
	}
	return m, nil
}

// Streams is how many the comm is to have over TCP.
func (m *Lanes) Streams() int { return int(m.Lanes[0].Streams) }

// Ports are those of the listening side's device, in its inventory.
func (m *Lanes) Ports() (all []uint16) {
	for _, l := range m.Lanes[1:] {
		all = append(all, l.Device)
	}
	return all
}
