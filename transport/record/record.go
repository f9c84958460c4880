package record

/*
#cgo CFLAGS: -std=gnu11
#include "record.h"

static uint32_t name(_GoString_ text) {
	char copy[WEFT_CELL_TEXT + 1];
	size_t n = _GoStringLen(text) < WEFT_CELL_TEXT ? _GoStringLen(text) : WEFT_CELL_TEXT;
	__builtin_memcpy(copy, _GoStringPtr(text), n);
	copy[n] = 0;
	return weft_record_text(copy);
}
*/
import "C"

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/record/format"
	"weft/transport/record/mapped"
	"weft/transport/task"
)

// Config says where a process keeps its records.
type Config struct {
	Dir   string // made if it is not there
	Bytes int64  // of the file
	Build string // the library's version
	Log   report.Logger
}

var process struct {
	mu   sync.Mutex
	path string // protected by mu; "": nothing is recorded
}

// Open begins the process's file, which is written until the process ends, and
// returns its path. A process has one: later calls return the same.
func Open(c Config) (string, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.path != "" {
		return process.path, nil
	}
	chunks := (max(c.Bytes, minBytes) - format.ChunksAt) / format.ChunkBytes
	f, err := mapped.Create(mapped.Spec{
		Dir: c.Dir, Suffix: ".rec", Bytes: format.ChunksAt + chunks*format.ChunkBytes, Build: c.Build, Lower: "lower WEFT_PROFILE_SIZE, or ",
		Fill: func(mem []byte) { head(mem, uint32(chunks)) },
	})
	if err != nil {
		return "", &report.Error{Op: "record", Dev: c.Dir, Cause: report.Host, Err: err}
	}
	if errno := C.weft_record_begin((*C.struct_weft_record_file)(unsafe.Pointer(&f.Mem[0]))); errno != 0 {
		f.Remove()
		return "", &report.Error{Op: "record", Dev: c.Dir, Cause: report.Host, Err: syscall.Errno(errno), Remedy: "no thread-specific key is left: see which library takes them all"}
	}
	process.path = f.Path
	f.Live(c.Log)
	go populate(c.Log, f.Mem)
	go watchRunDelay(c.Log)
	return f.Path, nil
}

// minBytes are those of a file in which a few threads have room.
const minBytes = format.ChunksAt + 16*format.ChunkBytes

// head writes what the first page says of the file.
func head(mem []byte, chunks uint32) {
	copy(mem, format.Magic)
	for at, v := range map[int]uint32{format.OffVersion: format.Version, format.OffChunks: chunks, format.OffCellsAt: format.CellsAt, format.OffChunksAt: format.ChunksAt} {
		binary.LittleEndian.PutUint32(mem[at:], v)
	}
}

// populate has the kernel map the pages before they are written, a piece at a
// time: a first write to one takes ten times as long as the others.
func populate(log report.Logger, mem []byte) {
	defer task.Rescue(log, "record", task.Nobody)
	const piece = 1 << 20
	for at := 0; at < len(mem); at += piece {
		if unix.Madvise(mem[at:min(at+piece, len(mem))], unix.MADV_POPULATE_WRITE) != nil {
			return // a kernel before 5.14: each page on its first write
		}
	}
}

// On reports whether anything is recorded.
func On() bool { return C.weft_recording() != 0 }

var said atomic.Uint64 // texts

// Say keeps what the process says of itself, as much as a text may have.
func Say(text string) {
	if !On() {
		return
	}
	text = text[:min(len(text), format.SaidMost*format.SaidBytes)]
	r := format.Record{Kind: format.Said, ID: said.Add(1)}
	for ; text != ""; r.Flags++ {
		var part [format.SaidBytes]byte
		text = text[copy(part[:], text):]
		for i := range r.More {
			r.More[i] = binary.LittleEndian.Uint64(part[8*i:])
		}
		Keep(r, true)
	}
}

// Name puts a text into the file; 0: there is none, or no room for it.
func Name(text string) uint32 { return uint32(C.name(text)) }

// Keep writes a record, and what is in More if more, where it stays longer than
// the events of threads.
func Keep(r format.Record, more bool) {
	if !On() {
		return
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	c := C.struct_weft_record{
		kind: C.uint8_t(r.Kind), _type: C.uint8_t(r.Type), comm: C.uint16_t(r.Comm), time: C.weft_record_clock(),
		id: C.uint64_t(r.ID), parent: C.uint64_t(r.Parent), rank: C.int32_t(r.Rank), flags: C.uint32_t(r.Flags),
		a: C.uint64_t(r.A), b: C.uint64_t(r.B), c: C.uint64_t(r.C),
	}
	if !more {
		C.weft_record_keep(&c, nil)
		return
	}
	m := C.struct_weft_more{kind: C.uint8_t(format.More), _type: C.uint8_t(r.Type), comm: C.uint16_t(r.Comm)}
	for i, w := range r.More {
		m.word[i] = C.uint64_t(w)
	}
	C.weft_record_keep(&c, &m)
}
