package wire

// Further offers lanes of an open comm that its offer left for later, on the
// control connection: the connecting side's ends of them, and the keys of what
// the listening side writes into, by slot. Of each pair of ports come all
// further lanes or none, in their order.
type Further struct {
	Header
	Keys  []uint32
	Lanes []QPEnd
}

// FurtherAnswer has the listening side's ends of those that it could make, in
// the same order, of each pair all or none; the reason is why others are missing.
type FurtherAnswer struct {
	Header
	Reason string
	Keys   []uint32
	Lanes  []QPEnd
}

// Join says for which pairs of ports, a bit each in the order of the offer, the
// connecting side has connected its ends of the answered lanes, and proven them
// where its port is new to the comm.
type Join struct {
	Header
	Pairs uint32
}

// Joined says which of these the listening side uses from now on, and why not
// the others. The connecting side uses them for groups from the one numbered
// From on: earlier receives were announced without the keys that they need.
type Joined struct {
	Header
	Reason string
	Pairs  uint32
	From   uint64
}

// appendFurther writes what both have.
func appendFurther(dst []byte, keys []uint32, lanes []QPEnd) []byte {
	keys, lanes = keys[:min(len(keys), MaxSlots)], lanes[:min(len(lanes), MaxLanes-1)]
	dst = append(dst, byte(len(keys)), byte(len(lanes)))
	for _, k := range keys {
		dst = le.AppendUint32(dst, k)
	}
	for i := range lanes {
		dst = lanes[i].append(dst)
	}
	return dst
}

func (c *cursor) further() (keys []uint32, lanes []QPEnd) {
	k, n := int(c.u8()), int(c.u8())
	c.bad = c.bad || k > MaxSlots || n >= MaxLanes || (k == 0) != (n == 0) // one lane was there before
	for i := 0; i < k && !c.bad; i++ {
		keys = append(keys, c.u32())
	}
	for i := 0; i < n && !c.bad; i++ {
		e := c.qpEnd()
		c.bad = c.bad || int(e.Slot) >= k
		lanes = append(lanes, e)
	}
	return keys, lanes
}

// Append writes m.
func (m *Further) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendFurther(m.begin(dst, KindFurther), m.Keys, m.Lanes), start)
}

// ParseFurther reads an offer of further lanes.
func ParseFurther(frame []byte) (Further, error) {
	h, c, err := open(frame, KindFurther)
	if err != nil {
		return Further{}, err
	}
	m := Further{Header: h}
	m.Keys, m.Lanes = c.further()
	if !c.done() || len(m.Lanes) == 0 {
		return Further{}, malformed("further lanes", "%d lanes, %d keys in %d bytes", len(m.Lanes), len(m.Keys), len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *FurtherAnswer) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendFurther(appendText(m.begin(dst, KindFurtherAnswer), m.Reason, maxReason), m.Keys, m.Lanes), start)
}

// ParseFurtherAnswer reads the answer to one.
func ParseFurtherAnswer(frame []byte) (FurtherAnswer, error) {
	h, c, err := open(frame, KindFurtherAnswer)
	if err != nil {
		return FurtherAnswer{}, err
	}
	m := FurtherAnswer{Header: h, Reason: c.text(maxReason)}
	m.Keys, m.Lanes = c.further()
	if !c.done() || m.Reason == "" && len(m.Lanes) == 0 {
		return FurtherAnswer{}, malformed("answer to further lanes", "%d lanes, %d keys, reason %q in %d bytes", len(m.Lanes), len(m.Keys), m.Reason, len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *Join) Append(dst []byte) []byte {
	start := len(dst)
	return finish(le.AppendUint32(m.begin(dst, KindJoin), m.Pairs), start)
}

// ParseJoin reads which lanes are ready on the connecting side.
func ParseJoin(frame []byte) (Join, error) {
	h, c, err := open(frame, KindJoin)
	if err != nil {
		return Join{}, err
	}
	m := Join{Header: h, Pairs: c.u32()}
	if !c.done() {
		return Join{}, malformed("join", "%d bytes", len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *Joined) Append(dst []byte) []byte {
	start := len(dst)
	dst = le.AppendUint32(appendText(m.begin(dst, KindJoined), m.Reason, maxReason), m.Pairs)
	return finish(le.AppendUint64(dst, m.From), start)
}

// ParseJoined reads which lanes are in use on the listening side.
func ParseJoined(frame []byte) (Joined, error) {
	h, c, err := open(frame, KindJoined)
	if err != nil {
		return Joined{}, err
	}
	m := Joined{Header: h, Reason: c.text(maxReason), Pairs: c.u32(), From: c.u64()}
	if !c.done() || (m.Pairs == 0) != (m.From == 0) || m.Pairs == 0 && m.Reason == "" {
		return Joined{}, malformed("joined", "pairs %#x from group %d on, reason %q in %d bytes", m.Pairs, m.From, m.Reason, len(frame))
	}
	return m, nil
}
