package profiler

import (
	"math"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/transport/record"
	"weft/transport/record/format"
)

// Profiler records the communicators that it is asked for.
//
// Where nothing is to be recorded, or cannot be, its init succeeds with an empty
// mask and a NULL context. A failed init would say the same louder and worse:
//   - 2.23 to 2.27 warn about it and set their profiler to NULL while other
//     communicators' threads may be using it.
//   - 2.28 and 2.29 log it and go on calling this profiler with a context that
//     was never set.
//   - 2.30 and 2.31 drop a reference on failure and again at finalize, so that the
//     count is wrong ever after.
//
// With the mask empty no release starts an event, and from 2.28 on finalize is
// not called for a NULL context.
type Profiler struct {
	abi.ProfilerDefaults

	// Wanted makes the process record, and opens further profilers, if its user
	// wants that. It returns the events to be asked for, 0 for none, and whether
	// there are further profilers.
	Wanted func(a *abi.ProfilerInitArgs) (mask int32, chained bool)

	// Begin makes communicator n known to the further profilers. What they want
	// they are asked in C, once Init has returned. Where it fails, nothing is
	// recorded of the communicator either.
	Begin func(n uint16, mask int32, a *abi.ProfilerInitArgs) (begun bool)

	comms atomic.Uint32 // numbers given out
}

// Init numbers the communicator. Its context is that number, which is all that
// the events of a context need.
func (p *Profiler) Init(a *abi.ProfilerInitArgs) error {
	*a.Context = 0
	mask, chained := p.Wanted(a)
	if !chained { // else C says it, which knows more. Hosts have one mask for all communicators, which may begin at once
		atomic.StoreInt32(a.EActivationMask, mask)
	}
	if mask == 0 && !chained {
		return nil
	}
	n := p.comms.Add(1)
	if n > math.MaxUint16 {
		p.comms.Store(math.MaxUint16) // it stays there, and nothing is recorded of those that follow
		return nil                    // the mask stays: it is that of all the host's communicators
	}
	if chained && !p.Begin(uint16(n), mask, a) {
		return nil
	}
	*a.Context = uintptr(n)
	if mask == 0 {
		return nil
	}
	name := ""
	if a.CommName != nil {
		name = unix.BytePtrToString(a.CommName)
	}
	record.Keep(format.Record{
		Kind: format.Comm, Comm: uint16(n), Rank: a.Rank, A: a.CommId,
		B: uint64(record.Name(name)) | uint64(uint32(a.Nranks))<<32, C: uint64(uint32(a.NNodes)) | uint64(uint32(a.Table))<<32,
	}, false)
	return nil
}

// Finalize ends what init began; a context that it did not give is nobody's.
func (p *Profiler) Finalize(a *abi.ProfilerFinalizeArgs) error {
	if a.Context != 0 && a.Context <= uintptr(p.comms.Load()) {
		record.Keep(format.Record{Kind: format.CommEnd, Comm: uint16(a.Context)}, false)
	}
	return nil
}
