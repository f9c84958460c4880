package wire

// Refused says that the sender posts nothing of group Seq, because the send
// matched to its entry is larger than the receive: Size bytes for Room.
type Refused struct {
	Header
	Seq   uint64
	Entry uint32
	Size  uint64
	Room  uint64
}

// Append writes m.
func (m *Refused) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindRefused)
	dst = le.AppendUint64(dst, m.Seq)
	dst = le.AppendUint32(dst, m.Entry)
	dst = le.AppendUint64(dst, m.Size)
	return finish(le.AppendUint64(dst, m.Room), start)
}

// ParseRefused reads a refused.
func ParseRefused(frame []byte) (Refused, error) {
	h, c, err := open(frame, KindRefused)
	if err != nil {
		return Refused{}, err
	}
	m := Refused{Header: h, Seq: c.u64(), Entry: c.u32(), Size: c.u64(), Room: c.u64()}
	if !c.done() || m.Entry >= 8 {
		return Refused{}, malformed("refused", "entry %d in %d bytes", m.Entry, len(frame))
	}
	return m, nil
}
