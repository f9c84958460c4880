package wire

// Go is the connecting side's last word on a comm's first stream: all streams
// stand, the comm is attached, its host takes it, data may follow in the next byte. With FlagVerbs
// there are no further streams, and both sides close this one; without it NoRDMA
// is why.
type Go struct {
	Header
	NoRDMA string
}

// Append writes m.
func (m *Go) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindGo)
	return finish(appendText(dst, m.NoRDMA, maxReason), start)
}

// ParseGo reads a go.
func ParseGo(frame []byte) (Go, error) {
	h, c, err := open(frame, KindGo)
	if err != nil {
		return Go{}, err
	}
	m := Go{Header: h, NoRDMA: c.text(maxReason)}
	if !c.done() {
		return Go{}, malformed("go", "reason does not fill its %d bytes", len(frame))
	}
	return m, nil
}
