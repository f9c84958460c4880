package lanes

import (
	"context"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/liveness"
	"weft/transport/pool"
	"weft/transport/task"
)

// Shared is what the queue pairs of all comms of a process share.
type Shared struct {
	Knobs   *knob.Values
	Log     report.Logger // of the process
	Timeout time.Duration // T
	Watch   *liveness.Watcher
	Pool    *pool.Pool[*Kit]
	Growing *task.Slots // comms that get further lanes
	Lingers func(n int) // counts what still ends in the background
	Busy    func() bool // a connection is being set up
}

// Lazy reports whether further lanes come later.
func (s *Shared) Lazy() bool { return s.Knobs.Text(knob.Lazy) != "off" }

// OfferLimit bounds what either side spends on the lanes of one offer, so that
// a peer that waits for the answer, and then for TCP, does not give up first.
func (s *Shared) OfferLimit() time.Duration { return s.Timeout / 4 }

// flushing is what WEFT_FLUSH says, else NCCL's own variable.
func (s *Shared) flushing() string {
	mode := s.Knobs.Text(knob.Flush)
	if mode == "" && s.Knobs.Int(knob.GDRFlushDisable) != 0 {
		return "never"
	}
	return mode
}

// striping is how the lanes of a comm share its messages.
func (s *Shared) striping() string {
	if mode := s.Knobs.Text(knob.Striping); mode != "" {
		return mode
	}
	return "measured"
}

// quiet lets connections that the host waits for go first: it waits until none is
// being set up, but not for long.
func (s *Shared) quiet(ctx context.Context) {
	const look = 2 * time.Millisecond
	for deadline := time.Now().Add(s.OfferLimit()); ctx.Err() == nil && time.Now().Before(deadline); time.Sleep(look) {
		if !s.Busy() {
			return
		}
	}
}
