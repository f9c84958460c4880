package wire

import "io"

// Reader cuts a byte stream into frames. It reads ahead as far as its buffer of
// one frame reaches, so a caller that hands the stream on asks Buffered first.
type Reader struct {
	from     io.Reader
	buf      [MaxFrame]byte
	lo, hi   int
	consumed int // of the frame handed out last
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader { return &Reader{from: r} }

// Reset makes r read from another stream, forgetting what it had buffered.
func (r *Reader) Reset(from io.Reader) { r.from, r.lo, r.hi, r.consumed = from, 0, 0, 0 }

// Buffered returns how many bytes beyond the last frame have been read.
func (r *Reader) Buffered() int { return r.hi - r.lo - r.consumed }

// Bytes returns the next n bytes (frames 1 to 3 have no header), valid until the next call.
func (r *Reader) Bytes(n int) ([]byte, error) {
	if err := r.fill(n); err != nil {
		return nil, err
	}
	r.consumed = n
	return r.buf[r.lo : r.lo+n], nil
}

// Next returns the next frame, valid until the next call. The end of the stream
// between two frames is io.EOF, inside one io.ErrUnexpectedEOF.
func (r *Reader) Next() ([]byte, error) {
	if err := r.fill(HeaderSize); err != nil {
		return nil, err
	}
	n, err := FrameLength(r.buf[r.lo:r.hi])
	if err != nil {
		return nil, err
	}
	return r.Bytes(n)
}

// fill drops the frame handed out last and makes n bytes available.
func (r *Reader) fill(n int) error {
	r.lo += r.consumed
	r.consumed = 0
	if r.lo+n > len(r.buf) || r.lo == r.hi {
		copy(r.buf[:], r.buf[r.lo:r.hi])
		r.lo, r.hi = 0, r.hi-r.lo
	}
	if r.hi-r.lo >= n {
		return nil
	}
	m, err := io.ReadAtLeast(r.from, r.buf[r.hi:], n-(r.hi-r.lo))
	r.hi += m
	if err == io.EOF && r.hi > r.lo {
		return io.ErrUnexpectedEOF
	}
	return err
}
