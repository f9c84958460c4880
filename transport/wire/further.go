package wire

// Further offers the lanes of an open comm that its offer left for later, all
// at once, on the control connection: the connecting side's ends of them.
type Further struct {
	Header
	Lanes []QPEnd
}

// FurtherAnswer accepts them, with the listening side's ends in the same order,
// or refuses them: then it has a reason, and the comm goes on without.
type FurtherAnswer struct {
	Header
	Reason string
	Lanes  []QPEnd
}

// appendLanes writes what both have.
func appendLanes(dst []byte, lanes []QPEnd) []byte {
	lanes = lanes[:min(len(lanes), MaxLanes-1)]
	dst = append(dst, byte(len(lanes)))
	for i := range lanes {
		dst = lanes[i].append(dst)
	}
	return dst
}

func (c *cursor) lanes() (lanes []QPEnd) {
	n := int(c.u8())
	c.bad = c.bad || n >= MaxLanes // one was there before
	for i := 0; i < n && !c.bad; i++ {
		e := c.qpEnd()
		c.bad = c.bad || e.Slot >= MaxSlots
		lanes = append(lanes, e)
	}
	return lanes
}

// Append writes m.
func (m *Further) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendLanes(m.begin(dst, KindFurther), m.Lanes), start)
}

// ParseFurther reads an offer of further lanes.
func ParseFurther(frame []byte) (Further, error) {
	h, c, err := open(frame, KindFurther)
	if err != nil {
		return Further{}, err
	}
	m := Further{Header: h, Lanes: c.lanes()}
	if !c.done() || len(m.Lanes) == 0 {
		return Further{}, malformed("further lanes", "%d lanes in %d bytes", len(m.Lanes), len(frame))
	}
	return m, nil
}

// Append writes m.
func (m *FurtherAnswer) Append(dst []byte) []byte {
	start := len(dst)
	return finish(appendLanes(appendText(m.begin(dst, KindFurtherAnswer), m.Reason, maxReason), m.Lanes), start)
}

// ParseFurtherAnswer reads the answer to one.
func ParseFurtherAnswer(frame []byte) (FurtherAnswer, error) {
	h, c, err := open(frame, KindFurtherAnswer)
	if err != nil {
		return FurtherAnswer{}, err
	}
	m := FurtherAnswer{Header: h, Reason: c.text(maxReason), Lanes: c.lanes()}
	if !c.done() || (m.Reason != "") != (len(m.Lanes) == 0) {
		return FurtherAnswer{}, malformed("answer to further lanes", "%d lanes, reason %q in %d bytes", len(m.Lanes), m.Reason, len(frame))
	}
	return m, nil
}
