package collnet

import (
	"encoding/binary"

	"weft/internal/report"
)

// What ranks say first on each connection, all of 8 bytes: magic, version of what ranks say to each other, ranks, rank,
// track, tracks, and what all must have alike.
const (
	helloMagic   = 0x6c6c6f6374666577 // "weftcoll"
	helloVersion = 2
	helloTag     = 0x7fffffff // of no chunk
	slot         = 64         // bytes of a hello
)

var le = binary.LittleEndian

// hello writes this rank's, for a connection.
func (j *joining) hello(k *call) Buffer {
	c := j.c
	place := (len(j.calls) + 1 + k.track) * slot
	b := j.mem.bytes[place : place : place+slot]
	for _, v := range []uint64{helloMagic, helloVersion, uint64(c.n), uint64(c.rank), uint64(k.track), uint64(len(c.tracks)), uint64(c.ctx.Chunk), 0} {
		b = le.AppendUint64(b, v)
	}
	return j.mem.at(place, slot)
}

// meet judges the hello of a connection, and gives it its place.
func (j *joining) meet(h *hail, size int) error {
	c := j.c
	wrong := func(format string, a ...any) *report.Error {
		return c.errorf(report.Usage, "connect", format, a...).With(h.link.Peer())
	}
	b := j.mem.bytes[h.place*slot:][:slot]
	word := func(i int) uint64 { return le.Uint64(b[8*i:]) }
	if size != slot || word(0) != helloMagic {
		return c.errorf(report.Peer, "connect", "a connection that is not of a collective").With(h.link.Peer())
	}
	rank, track := int(word(3)), int(word(4))
	switch {
	case word(1) != helloVersion:
		return wrong("rank %d speaks version %d of collectives, rank %d version %d", rank, word(1), c.rank, helloVersion).Try("all hosts must run the same weft")
	case word(2) != uint64(c.n):
		return wrong("rank %d knows %d ranks, rank %d knows %d", rank, word(2), c.rank, c.n)
	case word(6) != uint64(c.ctx.Chunk):
		return wrong("rank %d has chunks of %d KiB, rank %d of %d", rank, word(6)>>10, c.rank, c.ctx.Chunk>>10).Try("set WEFT_COLLNET_CHUNK alike on all hosts")
	case word(5) != uint64(len(c.tracks)) || word(4) >= uint64(len(c.tracks)) || word(3) >= uint64(c.n) || rank == c.rank || c.tracks[track].receives[rank] != nil:
		return wrong("rank %d, which says that it is rank %d on track %d of %d", c.rank, rank, track, word(5))
	}
	c.tracks[track].receives[rank], h.link = h.link, nil
	return nil
}
