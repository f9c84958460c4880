package trace

import (
	"cmp"
	"io"
	"slices"

	"weft/transport/record/format"
)

// chunk is what one holds of its latest turn.
type chunk struct {
	turn    uint64
	tid     uint32
	name    uint32
	records []Record
}

// tries to read a chunk that a thread overwrites meanwhile.
const tries = 4

func (f *File) readChunks(r io.ReaderAt, chunks int64) []chunk {
	var all []chunk
	var foreign, unknown uint64
	buf := make([]byte, format.ChunkBytes)
	for i := range chunks {
		c, ok, err := read(r, i, buf)
		switch {
		case err != nil:
			f.note("chunk %d: %v", i, err)
			f.Loss.Unread++
			continue
		case !ok:
			f.Loss.Unread++
			continue
		case c.turn == 0:
			continue
		case (c.turn-1)%uint64(f.Header.Chunks) != uint64(i) || c.turn >= 1<<(format.TypeShift-10):
			foreign++
			continue
		}
		torn, strange := c.parse(buf)
		f.Loss.Torn += torn
		unknown += strange
		if len(c.records) > 0 {
			all = append(all, c)
		}
	}
	if foreign > 0 {
		f.note("%d chunks have a turn that is not of their place", foreign)
		f.Loss.Unread += foreign
	}
	if unknown > 0 {
		f.note("%d records are of a kind that this weft does not know", unknown)
	}
	slices.SortFunc(all, func(a, b chunk) int { return cmp.Compare(a.turn, b.turn) })
	return all
}

// read has chunk i in buf, all of one turn; ok is false where there was no getting one.
func read(r io.ReaderAt, i int64, buf []byte) (c chunk, ok bool, err error) {
	at := format.ChunksAt + i*format.ChunkBytes
	head := buf[:format.RecordBytes]
	for range tries {
		if n, err := r.ReadAt(head, at); n < len(head) {
			return c, false, err
		}
		c.turn = order.Uint64(head[format.OffTurn:])
		if c.turn == 0 {
			return c, true, nil
		}
		if n, err := r.ReadAt(buf, at); n < len(buf) {
			return c, false, err
		}
		var after [format.RecordBytes]byte
		if n, err := r.ReadAt(after[:], at); n < len(after) {
			return c, false, err
		}
		if order.Uint64(after[format.OffTurn:]) == c.turn {
			c.tid = order.Uint32(after[format.OffTID:]) // is written after the turn
			c.name = order.Uint32(after[format.OffName:])
			return c, true, nil
		}
	}
	return c, false, nil
}

// Offsets in a record.
const (
	offSeq    = 0
	offKind   = 4
	offType   = 5
	offComm   = 6
	offTime   = 8
	offID     = 16
	offParent = 24
	offRank   = 32
	offFlags  = 36
	offA      = 40
	offB      = 48
	offC      = 56
	offWords  = 8 // of More
)

// parse takes the records of the chunk's turn. A place without one is torn if
// the same thread has written a later one. The last place stays empty where two
// were needed.
func (c *chunk) parse(buf []byte) (torn, unknown uint64) {
	var gap uint64
	last := 0 // the place of the latest record that More may add to
	for i := 1; i < format.ChunkRecords; i++ {
		b := buf[i*format.RecordBytes:][:format.RecordBytes]
		at := c.turn*format.ChunkRecords + uint64(i)
		if order.Uint32(b[offSeq:]) != uint32(at) {
			gap++
			continue
		}
		torn += gap
		gap = 0
		switch kind := format.Kind(b[offKind]); {
		case kind == format.More && last == i-1 && last > 0:
			r := &c.records[len(c.records)-1]
			for w := range r.More {
				r.More[w] = order.Uint64(b[offWords+8*w:])
			}
		case kind == format.More:
			torn++ // what it belongs to
		case kind < format.Start || kind > format.RunDelay:
			unknown++
		default:
			last = i
			c.records = append(c.records, Record{At: at, Record: format.Record{
				Kind: kind, Type: b[offType], Comm: order.Uint16(b[offComm:]), Time: order.Uint64(b[offTime:]),
				ID: order.Uint64(b[offID:]), Parent: order.Uint64(b[offParent:]),
				Rank: int32(order.Uint32(b[offRank:])), Flags: order.Uint32(b[offFlags:]),
				A: order.Uint64(b[offA:]), B: order.Uint64(b[offB:]), C: order.Uint64(b[offC:]),
			}})
		}
	}
	return torn, unknown
}

// lifetime is longer than a process records, ns.
const lifetime = 1 << 58

// timely leaves out records of times at which the process cannot have written
// them: before it made its file, or years later. If they are most, it is the
// header's clock that is wrong.
func (f *File) timely(all []chunk) []chunk {
	strange := func(r Record) bool { return r.Time-f.Header.Mono > lifetime }
	var some, most uint64
	for _, c := range all {
		for _, r := range c.records {
			most++
			if strange(r) {
				some++
			}
		}
	}
	switch {
	case some == 0:
		return all
	case 2*some > most:
		f.note("the header's clock (%d) is not that of the records", f.Header.Mono)
		return all
	}
	f.note("%d records have a time at which the process cannot have written them", some)
	f.Loss.Torn += some
	for i := range all {
		all[i].records = slices.DeleteFunc(all[i].records, strange)
	}
	return slices.DeleteFunc(all, func(c chunk) bool { return len(c.records) == 0 })
}

// thread gives each thread its records. Chunks come in the order of their turns.
func (f *File) thread(all []chunk) {
	index := map[[2]uint32]int{}
	for _, c := range all {
		key := [2]uint32{c.tid, c.name} // the kernel gives a number again
		i, known := index[key]
		if !known {
			i = len(f.Threads)
			index[key] = i
			f.Threads = append(f.Threads, Thread{TID: c.tid, Name: f.Text(c.name)})
		}
		f.Threads[i].Records = append(f.Threads[i].Records, c.records...)
	}
	for _, t := range f.Threads {
		slices.SortStableFunc(t.Records, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
	}
}
