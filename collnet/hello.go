package collnet

import (
	"encoding/binary"
	"fmt"
)

const (
	helloMagic   = 0x6c6c6f6374666577 // "weftcoll"
	helloVersion = 2
	helloTag     = 0x7fffffff // of no chunk
	slot         = 64         // bytes of a hello
)

var le = binary.LittleEndian

// hello is what a rank says first on each connection: words of 8 bytes, the magic and these in their order, and one that is 0.
type hello struct {
	version uint64 // of what ranks say to each other
	n       uint64 // ranks
	rank    uint64
	track   uint64
	tracks  uint64
	chunk   uint64 // bytes
}

// put writes h, of which b has the slot.
func (h hello) put(b []byte) {
	for i, v := range []uint64{helloMagic, h.version, h.n, h.rank, h.track, h.tracks, h.chunk, 0} {
		le.PutUint64(b[8*i:], v)
	}
}

// readHello is what a slot says; false: it is none.
func readHello(b []byte) (hello, bool) {
	word := func(i int) uint64 { return le.Uint64(b[8*i:]) }
	return hello{version: word(1), n: word(2), rank: word(3), track: word(4), tracks: word(5), chunk: word(6)}, word(0) == helloMagic
}

// refuse is why the rank that says h does not take a connection on which another says o, and what helps; empty: it takes it.
func (h hello) refuse(o hello) (why, remedy string) {
	switch {
	case o.version != h.version:
		return fmt.Sprintf("rank %d speaks version %d of collectives, rank %d version %d", o.rank, o.version, h.rank, h.version), "all hosts must run the same weft"
	case o.n != h.n:
		return fmt.Sprintf("rank %d was given %d ranks, rank %d was given %d", o.rank, o.n, h.rank, h.n), ""
	case o.chunk != h.chunk:
		return fmt.Sprintf("rank %d has chunks of %d KiB, rank %d of %d", o.rank, o.chunk>>10, h.rank, h.chunk>>10), "set WEFT_COLLNET_CHUNK alike on all hosts"
	case o.tracks != h.tracks || o.track >= h.tracks || o.rank >= h.n || o.rank == h.rank:
		return fmt.Sprintf("a peer says to rank %d of %d that it is rank %d, on track %d of %d; there are %d tracks", h.rank, h.n, o.rank, o.track, o.tracks, h.tracks), ""
	}
	return "", ""
}
