package tuner

import (
	"time"

	"weft/abi"
	"weft/collnet/choose"
	"weft/internal/report"
)

const (
	tableCosts  = 3 // the oldest table in which costs can be changed, of NCCL 2.22; before, only a choice could be made
	tableChunks = 6 // the oldest in which NCCL asks for the size of its chunks, of NCCL 2.30
)

// Comm is a communicator as the host describes it.
type Comm struct {
	ID           uint64 // the host's; 0: it tells none
	Ranks, Nodes int
	Table        int
}

// Times are how long a collective takes through our collNet, and by NCCL's own algorithms and protocols.
type Times struct {
	CollNet   time.Duration
	Otherwise [Alternatives][choose.Protocols]time.Duration
}

// Expect says what to expect of a collective of so many bytes, for each width that its elements may have.
type Expect func(f abi.Func, bytes int64) []Times

// Tuner vetoes CollNet where that is expected to gain too little.
//
// NCCL looks for it in every network's library, from 2.21 on, so that everybody
// has it. Its init always succeeds: a failed one fails the communicator, in every
// release, and a failed getCollInfo fails the collective, whatever NCCL's headers
// say. With nothing to veto the context is NULL, and NCCL's costs and numbers of
// channels stay as they are.
//
// Ranks must agree on what they do, or they wait for each other for ever. So
// what is expected must be the same on all of them: it follows from the shape of
// the communicator, the user's settings, and what all of its ranks have told each
// other, never from what one process has measured by itself.
type Tuner struct {
	abi.TunerDefaults

	// Wanted says whether the user wants collNet. Else nothing is vetoed, since
	// nothing of ours would be chosen.
	Wanted func() bool

	// Expect is what to expect of a communicator's collectives, and from where
	// that is known.
	Expect func(Comm) (expect Expect, known string)

	// Keep stores vetoes for getCollInfo and returns their number, until Drop. 0: no room.
	Keep func(*Vetoes) uintptr
	Drop func(uintptr)

	// Log is the log of a host's function, until the second result is called.
	Log func(function uintptr) (log report.Logger, drop func())
}

// Init decides what the communicator may not use.
func (t *Tuner) Init(a *abi.TunerInitArgs) error {
	*a.Ctx = 0
	if a.NNodes < 2 || !t.Wanted() {
		return nil
	}
	log, drop := t.Log(a.LogFunction)
	defer drop()
	comm := Comm{ID: a.CommId, Ranks: int(a.NRanks), Nodes: int(a.NNodes), Table: int(a.Table)}
	if a.Table < tableCosts {
		log.Info(report.Init, "CollNet on %d nodes: nothing is vetoed, since tuners of NCCL 2.21 are not told what it costs", comm.Nodes)
		return nil
	}
	expect, known := t.Expect(comm)
	vetoes, ranges := judge(expect)
	if *a.Ctx = t.Keep(vetoes); *a.Ctx == 0 {
		log.Warn("CollNet on %d nodes: nothing is vetoed, since this process has no room for the vetoes of another communicator; "+
			"ranks that have room may choose otherwise, and wait for this one: end communicators that are no longer used, or set WEFT_COLLNET=0 on all ranks", comm.Nodes)
		return nil
	}
	log.Info(report.Init, "CollNet on %d nodes: %s, whatever NCCL would take instead; other sizes where it is %.2f times as fast (%s)", comm.Nodes, ranges, gain, known)
	return nil
}

// Finalize gives up the communicator's vetoes, which others may have too.
func (t *Tuner) Finalize(a *abi.TunerFinalizeArgs) error {
	t.Drop(a.Context)
	return nil
}
