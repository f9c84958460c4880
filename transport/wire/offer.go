package wire

const (
	// MaxSlots is the most ports that carry the comms of one device, on one
	// host: a CTS line has a key for each.
	MaxSlots = 8

	max24 = 1 << 24 // queue pair and packet numbers have 24 bits
	maxSL = 15
)

// PortGID is a GID as the other side must know it.
type PortGID struct {
	Addr GID
	Type uint8 // enum ibv_gid_type
	Bits uint8 // length of its subnet
}

// ECE is a queue pair's vendor enhancements (struct ibv_ece); zero: none.
type ECE struct{ Vendor, Options, CompMask uint32 }

// QPEnd is one side's queue pair of a lane. Device and Peer are indices in the
// inventories of the message's sender and receiver. Slot is the number that the
// sender gives the port among those that carry its device's comms: keys of its
// memory, and CTS, are by slot.
type QPEnd struct {
	Device, Peer uint16
	Slot         uint8
	QPN, PSN     uint32
	LID          uint16
	MTU          uint8 // enum ibv_mtu
	GID          PortGID
	ECE          ECE
	Scratch      Scratch
}

// Scratch is memory of the message's sender that a proof writes to: how much
// arrives there matters, not what.
type Scratch struct {
	Addr uint64
	Key  uint32
}

// PortPair is two ports between which lanes may run, as the sender of a message
// sees them: as in a QPEnd.
type PortPair struct {
	Device, Peer uint16
	GID          PortGID
}

// Offer is the connecting side's proposal to carry a comm by RDMA, on the
// comm's first stream in place of go. Shared is where the listening side
// writes CTS, Keys its rkey by slot. Further lanes may be offered once the comm
// is open, also between the Later pairs of ports, between which none of Lanes
// runs: the comm's pairs are those of Lanes and the Later ones, as they come
// here, and lane i of all then runs between pair i mod their number. With
// FlagReuse the header's session and comm name a closed connection, whose lanes
// these are, connected still.
type Offer struct {
	Header
	SL, TC  uint8
	Further uint8
	Shared  uint64
	Keys    []uint32
	Lanes   []QPEnd
	Later   []PortPair
}

// Answer accepts an offer, with the listening side's ends of the same lanes and
// pairs in the same order, or refuses it: then it has a reason, the number of a
// pair that does not work, and nothing else.
type Answer struct {
	Header
	Reason string
	Pair   uint8
	Shared uint64
	Keys   []uint32
	Lanes  []QPEnd
	Later  []PortPair
}

func (g PortGID) append(dst []byte) []byte { return append(append(dst, g.Addr[:]...), g.Type, g.Bits) }

func (c *cursor) portGID() PortGID {
	var g PortGID
	c.copy(g.Addr[:])
	g.Type, g.Bits = c.u8(), c.u8()
	if g.Type > 2 || g.Bits > 128 {
		c.bad = true
	}
	return g
}

func (e *QPEnd) append(dst []byte) []byte {
	dst = le.AppendUint16(dst, e.Device)
	dst = append(le.AppendUint16(dst, e.Peer), e.Slot)
	dst = le.AppendUint32(dst, e.QPN)
	dst = le.AppendUint32(dst, e.PSN)
	dst = le.AppendUint16(dst, e.LID)
	dst = e.GID.append(append(dst, e.MTU))
	dst = le.AppendUint32(dst, e.ECE.Vendor)
	dst = le.AppendUint32(dst, e.ECE.Options)
	dst = le.AppendUint32(dst, e.ECE.CompMask)
	return le.AppendUint32(le.AppendUint64(dst, e.Scratch.Addr), e.Scratch.Key)
}

func (c *cursor) qpEnd() QPEnd {
	e := QPEnd{Device: c.u16(), Peer: c.u16(), Slot: c.u8(), QPN: c.u32(), PSN: c.u32(), LID: c.u16(), MTU: c.u8()}
	e.GID = c.portGID()
	e.ECE = ECE{Vendor: c.u32(), Options: c.u32(), CompMask: c.u32()}
	e.Scratch = Scratch{Addr: c.u64(), Key: c.u32()}
	if e.QPN >= max24 || e.PSN >= max24 || e.MTU < 1 || e.MTU > 5 || e.Device >= MaxDevices || e.Peer >= MaxDevices {
		c.bad = true
	}
	return e
}

func (p *PortPair) append(dst []byte) []byte {
	return p.GID.append(le.AppendUint16(le.AppendUint16(dst, p.Device), p.Peer))
}

func (c *cursor) portPair() PortPair {
	p := PortPair{Device: c.u16(), Peer: c.u16(), GID: c.portGID()}
	if p.Device >= MaxDevices || p.Peer >= MaxDevices {
		c.bad = true
	}
	return p
}

// appendEnds writes what offer and answer have in common.
func appendEnds(dst []byte, shared uint64, keys []uint32, lanes []QPEnd, later []PortPair) []byte {
	dst = le.AppendUint64(dst, shared)
	keys, lanes, later = keys[:min(len(keys), MaxSlots)], lanes[:min(len(lanes), MaxLanes)], later[:min(len(later), MaxLanes)]
	dst = append(dst, byte(len(keys)), byte(len(lanes)), byte(len(later)))
	for _, k := range keys {
		dst = le.AppendUint32(dst, k)
	}
	for i := range lanes {
		dst = lanes[i].append(dst)
	}
	for i := range later {
		dst = later[i].append(dst)
	}
	return dst
}

func (c *cursor) ends() (shared uint64, keys []uint32, lanes []QPEnd, later []PortPair) {
	shared = c.u64()
	n, m, l := int(c.u8()), int(c.u8()), int(c.u8())
	if n > MaxSlots || m+l > MaxLanes {
		c.bad = true
	}
	for i := 0; i < n && !c.bad; i++ {
		keys = append(keys, c.u32())
	}
	for i := 0; i < m && !c.bad; i++ {
		e := c.qpEnd()
		if int(e.Slot) >= n {
			c.bad = true
		}
		lanes = append(lanes, e)
	}
	for i := 0; i < l && !c.bad; i++ {
		later = append(later, c.portPair())
	}
	return shared, keys, lanes, later
}

// Append writes m.
func (m *Offer) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindOffer)
	return finish(appendEnds(append(dst, m.SL, m.TC, m.Further), m.Shared, m.Keys, m.Lanes, m.Later), start)
}

// ParseOffer reads an offer.
func ParseOffer(frame []byte) (Offer, error) {
	h, c, err := open(frame, KindOffer)
	if err != nil {
		return Offer{}, err
	}
	m := Offer{Header: h, SL: c.u8(), TC: c.u8(), Further: c.u8()}
	m.Shared, m.Keys, m.Lanes, m.Later = c.ends()
	reuse := m.Flags&FlagReuse != 0
	if !c.done() || m.SL > maxSL || reuse != (m.Comm != 0) || reuse != (m.Session != 0) || len(m.Keys) == 0 || len(m.Lanes) == 0 || len(m.Lanes)+int(m.Further) > MaxLanes || len(m.Later) > int(m.Further) {
		return Offer{}, malformed("offer", "%d lanes and %d later, on %d more pairs of ports, %d keys, SL %d in %d bytes", len(m.Lanes), m.Further, len(m.Later), len(m.Keys), m.SL, len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *Answer) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(appendText(m.begin(dst, KindAnswer), m.Reason, maxReason), m.Pair)
	return finish(appendEnds(dst, m.Shared, m.Keys, m.Lanes, m.Later), start)
}

// ParseAnswer reads an answer.
func ParseAnswer(frame []byte) (Answer, error) {
	h, c, err := open(frame, KindAnswer)
	if err != nil {
		return Answer{}, err
	}
	m := Answer{Header: h, Reason: c.text(maxReason), Pair: c.u8()}
	m.Shared, m.Keys, m.Lanes, m.Later = c.ends()
	refusal := m.Reason != ""
	if !c.done() || refusal != (len(m.Lanes) == 0) || refusal != (len(m.Keys) == 0) || (refusal && (m.Shared != 0 || len(m.Later) > 0)) || (!refusal && m.Pair != 0) || m.Pair >= MaxLanes {
		return Answer{}, malformed("answer", "%d lanes, %d keys, reason %q in %d bytes", len(m.Lanes), len(m.Keys), m.Reason, len(frame))
	}
	return m, nil
}
