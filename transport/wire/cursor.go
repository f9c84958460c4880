package wire

import "encoding/binary"

var le = binary.LittleEndian

// cursor reads one message front to back. The first field that does not fit
// makes it bad; from then on every read returns zero.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || n > len(c.rest) {
		c.bad = true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (c *cursor) copy(dst []byte) { copy(dst, c.take(len(dst))) }

// text reads a two-byte length and that many printable ASCII bytes: peers'
// texts end in log lines, where control bytes could forge other lines.
func (c *cursor) text(limit int) string {
	n := int(c.u16())
	if n > limit {
		c.bad = true
		return ""
	}
	b := c.take(n)
	for _, x := range b {
		if x < 0x20 || x > 0x7e {
			c.bad = true
			return ""
		}
	}
	return string(b)
}

// done reports whether every byte was read and every field fitted.
func (c *cursor) done() bool { return !c.bad && len(c.rest) == 0 }

// appendText writes s so that text reads it back: cut at limit, other bytes than
// printable ASCII replaced.
func appendText(dst []byte, s string, limit int) []byte {
	if len(s) > limit {
		s = s[:limit]
	}
	dst = le.AppendUint16(dst, uint16(len(s)))
	for i := 0; i < len(s); i++ {
		x := s[i]
		if x < 0x20 || x > 0x7e {
			x = '?'
		}
		dst = append(dst, x)
	}
	return dst
}
