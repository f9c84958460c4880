package wire

import "fmt"

const (
	// HandleMin is the handle of tables v2 to v4, HandleMax that of v5 and later.
	HandleMin = 64
	HandleMax = 128

	handleFixed = 40
	stateOffset = 32
)

var handleMagic = [4]byte{'w', 'e', 'f', 't'}

// Handle is what listen writes and NCCL carries to the connecting rank:
// magic 4 | version 1 | length 1 | n 1 | origin 1 | token 16 | listen id 8 |
// connector state 8 | n endpoints | host, where there is room for some of it.
type Handle struct {
	Origin   uint8 // a mark of the network stack that listens; 0: unknown
	Token    Token
	ListenID uint64
	State    uint64 // the connecting side's own; see PutState
	Addrs    []Endpoint
	Host     string // the name of the listening host, or how it begins
}

// Fits reports how many leading addresses a handle of size bytes holds.
func Fits(addrs []Endpoint, size int) int {
	used := handleFixed
	for i, a := range addrs {
		used += a.Size()
		if used > size || used > HandleMax {
			return i
		}
	}
	return len(addrs)
}

// Named is h with as much of the host's name as fits size bytes behind the addresses.
func (h Handle) Named(host string, size int) Handle {
	room := min(size, HandleMax) - handleFixed - 2
	for _, a := range h.Addrs {
		room -= a.Size()
	}
	h.Host = host[:max(0, min(len(host), room))]
	return h
}

// Append writes h, unpadded. The caller cuts Addrs with Fits.
func (h Handle) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, handleMagic[:]...)
	dst = append(dst, Version, 0, byte(len(h.Addrs)), h.Origin)
	dst = append(dst, h.Token[:]...)
	dst = le.AppendUint64(dst, h.ListenID)
	dst = le.AppendUint64(dst, h.State)
	for _, a := range h.Addrs {
		dst = a.append(dst)
	}
	if h.Host != "" {
		dst = appendText(dst, h.Host, maxHost)
	}
	dst[start+5] = byte(len(dst) - start)
	return dst
}

// ParseHandle reads the handle at the front of b; what follows its own length is padding.
func ParseHandle(b []byte) (Handle, error) {
	c := cursor{rest: b}
	var magic [4]byte
	c.copy(magic[:])
	version, length, n := c.u8(), int(c.u8()), int(c.u8())
	switch {
	case c.bad || magic != handleMagic:
		return Handle{}, malformed("handle", "no weft handle (magic % x)", magic)
	case version != Version:
		return Handle{}, fmt.Errorf("handle: version %d, this build speaks %d: %w", version, Version, ErrVersion)
	case length < handleFixed || length > len(b) || length > HandleMax:
		return Handle{}, malformed("handle", "length %d of %d bytes", length, len(b))
	case n == 0 || n > (HandleMax-handleFixed)/sizeIPv4:
		return Handle{}, malformed("handle", "%d addresses", n)
	}
	c.rest = c.rest[:length-7]
	var h Handle
	h.Origin = c.u8()
	c.copy(h.Token[:])
	h.ListenID = c.u64()
	h.State = c.u64()
	h.Addrs = make([]Endpoint, 0, n)
	for range n {
		e := c.endpoint()
		if e.Port == 0 {
			c.bad = true
		}
		h.Addrs = append(h.Addrs, e)
	}
	if len(c.rest) > 0 {
		if h.Host = c.text(maxHost); h.Host == "" {
			c.bad = true
		}
	}
	if !c.done() {
		return Handle{}, malformed("handle", "addresses and host do not fill its %d bytes", length)
	}
	return h, nil
}

// PutState stores the connecting side's state, the only field that connect writes.
func PutState(handle []byte, state uint64) { le.PutUint64(handle[stateOffset:], state) }

// State reads back what PutState stored, and the listen id beside it, from a
// handle that need not be valid.
func State(handle []byte) (state, listenID uint64) {
	if len(handle) < handleFixed {
		return 0, 0
	}
	return le.Uint64(handle[stateOffset:]), le.Uint64(handle[stateOffset-8:])
}
