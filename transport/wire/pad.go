package wire

// Pad fills a packet: a handshake's first large one, which proves that the path
// carries it. What is in it means nothing.
type Pad struct{ Header }

// Append writes pads that make dst at least n bytes longer.
func (m *Pad) Append(dst []byte, n int) []byte {
	for n > 0 {
		size := min(max(n, HeaderSize), MaxFrame)
		start := len(dst)
		dst = m.begin(dst, KindPad)
		dst = finish(append(dst, make([]byte, size-HeaderSize)...), start)
		n -= size
	}
	return dst
}

// mostPads bounds those before one message: more than any packet holds.
const mostPads = 1<<16/MaxFrame + 2

// NextPadded returns the next frame that is not a pad.
func (r *Reader) NextPadded() ([]byte, error) {
	for range mostPads {
		b, err := r.Next()
		if err != nil || KindOf(b) != KindPad {
			return b, err
		}
	}
	return nil, malformed("pad", "more than %d", mostPads)
}
