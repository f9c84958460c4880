package wire

// Stream joins a further connection to the comm in whose handshake the listening
// side drew the nonce Parent; Header.Lane names the lane.
type Stream struct {
	Header
	Parent Nonce
	Index  uint8 // 1 to the lane's streams - 1
}

// Append writes m.
func (m *Stream) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindStream)
	dst = append(dst, m.Parent[:]...)
	dst = append(dst, m.Index)
	return finish(dst, start)
}

// ParseStream reads a stream message.
func ParseStream(frame []byte) (Stream, error) {
	h, c, err := open(frame, KindStream)
	if err != nil {
		return Stream{}, err
	}
	m := Stream{Header: h}
	c.copy(m.Parent[:])
	m.Index = c.u8()
	if !c.done() || m.Index == 0 || m.Index >= MaxStreams || h.Lane >= MaxLanes {
		return Stream{}, malformed("stream", "lane %d stream %d in %d bytes", h.Lane, m.Index, len(frame))
	}
	return m, nil
}

// Taken says that a further stream is its comm's, which the connecting side waits
// for: then the packet that asked has passed.
type Taken struct{ Header }

// Append writes m.
func (m *Taken) Append(dst []byte) []byte {
	start := len(dst)
	return finish(m.begin(dst, KindTaken), start)
}

// ParseTaken reads a taken message.
func ParseTaken(frame []byte) (Taken, error) {
	h, c, err := open(frame, KindTaken)
	if err != nil {
		return Taken{}, err
	}
	if !c.done() {
		return Taken{}, malformed("taken", "%d bytes", len(frame))
	}
	return Taken{h}, nil
}
