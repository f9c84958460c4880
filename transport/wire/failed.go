package wire

// Failed says that this comm has failed on the sender's side, and why.
type Failed struct {
	Header
	Aborted bool // by the host's own calls, with requests in flight
	Reason  string
}

// Append writes m.
func (m *Failed) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(m.begin(dst, KindFailed), 0)
	if m.Aborted {
		dst[len(dst)-1] = 1
	}
	return finish(appendText(dst, m.Reason, maxReason), start)
}

// ParseFailed reads a failed.
func ParseFailed(frame []byte) (Failed, error) {
	h, c, err := open(frame, KindFailed)
	if err != nil {
		return Failed{}, err
	}
	aborted := c.u8()
	m := Failed{Header: h, Aborted: aborted == 1, Reason: c.text(maxReason)}
	if !c.done() || aborted > 1 {
		return Failed{}, malformed("failed", "aborted %d, or the reason does not fill its %d bytes", aborted, len(frame))
	}
	return m, nil
}
