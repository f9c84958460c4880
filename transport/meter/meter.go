package meter

/*
#cgo CFLAGS: -std=gnu11
#include "meter.h"
*/
import "C"

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unsafe"

	"weft/internal/report"
	"weft/transport/meter/format"
	"weft/transport/record/mapped"
)

// Config says where a process counts.
type Config struct {
	Dir   string // made if it is not there
	Build string // the library's version
	Log   report.Logger
}

var process struct {
	mu   sync.Mutex
	path string // protected by mu, as all below; "": nothing is counted
	file *C.struct_weft_meter_file
	log  report.Logger
}

// Open begins the process's file, which is written until the process ends, and
// returns its path. A process has one: later calls return the same.
func Open(c Config) (string, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.path != "" {
		return process.path, nil
	}
	f, err := mapped.Create(mapped.Spec{Dir: c.Dir, Suffix: format.Suffix, Bytes: format.Bytes, Build: c.Build, Fill: head})
	if err != nil {
		return "", &report.Error{Op: "metrics", Dev: c.Dir, Cause: report.Host, Err: err}
	}
	process.path, process.log = f.Path, c.Log
	process.file = (*C.struct_weft_meter_file)(unsafe.Pointer(&f.Mem[0]))
	atomic.StoreUint32((*uint32)(&C.weft_meter_on), 1)
	f.Live(c.Log)
	return f.Path, nil
}

// head writes what the first page says of the file.
func head(mem []byte) {
	copy(mem, format.Magic)
	for at, v := range map[int]uint32{format.OffVersion: format.Version, format.OffPlaces: format.Places, format.OffPlaceBytes: format.PlaceBytes} {
		binary.LittleEndian.PutUint32(mem[at:], v)
	}
}

// Rank says which rank the process is, in a communicator of so many. The largest
// communicator's is kept.
func Rank(rank, ranks int) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if f := process.file; f != nil && rank >= 0 && ranks > int(f.ranks) {
		atomic.StoreUint32((*uint32)(&f.ranks), uint32(ranks))
		atomic.StoreUint32((*uint32)(&f.rank), uint32(rank)+1)
	}
}

// Stalls counts waits that the log tells of: those that it told first since the last
// call, and those that last.
func Stalls(first, last int) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if f := process.file; f != nil {
		atomic.AddUint64((*uint64)(&f.stalls), uint64(first))
		atomic.StoreUint32((*uint32)(&f.stalled), uint32(last))
	}
}
