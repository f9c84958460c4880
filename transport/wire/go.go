package wire

// Go is the connecting side's last word on a comm's first stream: all streams
// stand, the comm is attached, data may follow in the next byte. With FlagVerbs
// there are no further streams, and both sides close this one.
type Go struct {
	Header
}

// Append writes m.
func (m *Go) Append(dst []byte) []byte {
	start := len(dst)
	return finish(m.begin(dst, KindGo), start)
}

// ParseGo reads a go.
func ParseGo(frame []byte) (Go, error) {
	h, c, err := open(frame, KindGo)
	if err != nil {
		return Go{}, err
	}
	if !c.done() {
		return Go{}, malformed("go", "%d bytes", len(frame))
	}
	return Go{Header: h}, nil
}
