package rectest

import (
	"encoding/binary"

	"weft/transport/record/format"
)

var order = binary.LittleEndian

// File is one that a process is writing.
type File struct {
	Bytes []byte

	chunks int
	turn   uint64
	active map[int]bool
	names  map[string]uint32
}

// New makes a file with room for so many chunks. The machine's boot ID is all of
// that byte, 0: it does not tell. Both clocks stand at mono and real.
func New(chunks int, pid uint64, host string, boot byte, mono, real uint64) *File {
	f := &File{Bytes: make([]byte, format.ChunksAt+chunks*format.ChunkBytes), chunks: chunks, active: map[int]bool{}, names: map[string]uint32{}}
	b := f.Bytes
	copy(b, format.Magic)
	order.PutUint32(b[format.OffVersion:], format.Version)
	order.PutUint32(b[format.OffChunks:], uint32(chunks))
	order.PutUint32(b[format.OffCellsAt:], format.CellsAt)
	order.PutUint32(b[format.OffChunksAt:], format.ChunksAt)
	order.PutUint64(b[format.OffPID:], pid)
	order.PutUint64(b[format.OffMono:], mono)
	order.PutUint64(b[format.OffReal:], real)
	order.PutUint64(b[format.OffProcess:], pid)
	for i := range format.IDLen {
		b[format.OffBoot+i] = boot
	}
	copy(b[format.OffHost:], host)
	copy(b[format.OffBuild:], "test")
	return f
}

// Name puts a text into the file.
func (f *File) Name(text string) uint64 {
	if text == "" {
		return 0
	}
	if n := f.names[text]; n != 0 {
		return uint64(n)
	}
	n := uint32(len(f.names)) + 1
	f.names[text] = n
	c := f.Bytes[format.CellsAt+int(n-1)*format.CellBytes:]
	order.PutUint32(c[format.OffCellState:], format.CellComplete)
	order.PutUint32(c[format.OffCellLength:], uint32(copy(c[format.OffCellText:format.CellBytes], text)))
	return uint64(n)
}

// Thread writes into the file as one of the process's threads does.
type Thread struct {
	f     *File
	tid   uint32
	name  uint32
	turn  uint64
	place int // of the next record
}

// Thread is a new one.
func (f *File) Thread(tid uint32, name string) *Thread {
	return &Thread{f: f, tid: tid, name: uint32(f.Name(name)), place: format.ChunkRecords}
}

func (f *File) count(word int, more uint64) {
	order.PutUint64(f.Bytes[word:], order.Uint64(f.Bytes[word:])+more)
}

func (f *File) at(turn uint64) int {
	return format.ChunksAt + int((turn-1)%uint64(f.chunks))*format.ChunkBytes
}

// advance takes the next chunk; false: all are in use.
func (t *Thread) advance() bool {
	f, own := t.f, 0
	if t.turn > 0 {
		own = f.at(t.turn)
	}
	for range f.chunks {
		f.turn++
		order.PutUint64(f.Bytes[format.OffTurns:], f.turn)
		at := f.at(f.turn)
		if f.active[at] && at != own {
			continue
		}
		delete(f.active, own)
		f.active[at] = true
		t.turn, t.place = f.turn, 1
		c := f.Bytes[at:]
		if order.Uint64(c[format.OffTurn:]) != 0 {
			f.count(format.OffLost, format.ChunkRecords-1)
		}
		order.PutUint64(c[format.OffTurn:], f.turn)
		order.PutUint32(c[format.OffActive:], 1)
		order.PutUint32(c[format.OffTID:], t.tid)
		order.PutUint32(c[format.OffName:], t.name)
		return true
	}
	return false
}

// End is the thread's: it leaves its chunk.
func (t *Thread) End() {
	delete(t.f.active, t.f.at(t.turn))
	order.PutUint32(t.f.Bytes[t.f.at(t.turn)+format.OffActive:], 0)
}

// Put writes a record, and what is in More if there is anything, and returns its
// position; 0: it was refused.
func (t *Thread) Put(r format.Record) uint64 {
	n := 1
	if r.More != [7]uint64{} {
		n = 2
	}
	if t.place+n > format.ChunkRecords && !t.advance() {
		t.f.count(format.OffRefused, 1)
		return 0
	}
	at := t.turn*format.ChunkRecords + uint64(t.place)
	if r.Kind == format.Start {
		r.ID = (uint64(r.Type)+1)<<format.TypeShift | at
	}
	if r.Kind == format.Message {
		r.ID = at
	}
	t.f.PlaceIn(int((t.turn-1)%uint64(t.f.chunks)), at, r)
	t.place += n
	return at
}

// Skip leaves a record unfinished, as a thread that was killed does.
func (t *Thread) Skip() {
	if t.place >= format.ChunkRecords {
		t.advance()
	}
	t.place++
}

// PlaceIn writes a record of that position into a chunk.
func (f *File) PlaceIn(chunk int, at uint64, r format.Record) {
	b := f.Bytes[format.ChunksAt+chunk*format.ChunkBytes+int(at%format.ChunkRecords)*format.RecordBytes:]
	order.PutUint32(b, uint32(at))
	b[4], b[5] = byte(r.Kind), r.Type
	order.PutUint16(b[6:], r.Comm)
	order.PutUint64(b[8:], r.Time)
	order.PutUint64(b[16:], r.ID)
	order.PutUint64(b[24:], r.Parent)
	order.PutUint32(b[32:], uint32(r.Rank))
	order.PutUint32(b[36:], r.Flags)
	order.PutUint64(b[40:], r.A)
	order.PutUint64(b[48:], r.B)
	order.PutUint64(b[56:], r.C)
	if r.More == [7]uint64{} {
		return
	}
	m := b[format.RecordBytes:]
	order.PutUint32(m, uint32(at+1))
	m[4], m[5] = byte(format.More), r.Type
	for i, w := range r.More {
		order.PutUint64(m[8+8*i:], w)
	}
}
