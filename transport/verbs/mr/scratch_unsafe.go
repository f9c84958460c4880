package mr

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
)

// scratchSize is as much as a packet carries at most.
const scratchSize = 4096

// scratch is memory of the process that proofs write from, and the peers' to. It
// is never given back: cards may write to it as long as one has it registered.
var scratch struct {
	once sync.Once
	addr uintptr
	err  error
}

// Scratch registers it with the card.
func (pd *PD) Scratch() (*Region, error) {
	scratch.once.Do(func() {
		var b []byte
		if b, scratch.err = unix.Mmap(-1, 0, scratchSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); scratch.err == nil {
			scratch.addr = uintptr(unsafe.Pointer(&b[0]))
		}
	})
	if scratch.err != nil {
		return nil, report.Errorf(report.Host, "connect", "mmap of %d bytes: %w", scratchSize, scratch.err).On(pd.card.Name).Try("the host is out of memory")
	}
	b, err := memory.NewBuffer(scratch.addr, scratchSize, rdma.MemHost)
	if err != nil {
		return nil, err
	}
	b.Strict = true
	return pd.Register(b, ibv.AccessCTS)
}

// ScratchAddr is where it lies, for the peer; a region of it has the key.
func ScratchAddr() uint64 { return uint64(scratch.addr) }
