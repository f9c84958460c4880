package collnet

import (
	"time"

	"weft/internal/report"
)

// joining is a connect under way.
type joining struct {
	c        *Comm
	door     Door
	deadline time.Time
	mem      scratch // what is sent and received meanwhile
	measures bool    // naps would count as the path's time
	peers    []int
	strange  []*hail // accepted, and not yet known which rank it is
	calls    []*call
}

// call is a connection to another rank that is being made.
type call struct {
	handle  []byte
	rank    int
	track   int
	link    Link
	request uintptr // of the hello
	done    bool
}

// hail is a connection from a rank that has not said which.
type hail struct {
	link    Link
	place   int // of its hello in the memory
	request uintptr
}

// until calls step until it is done, or the time is over; missing says for whom it waits.
func (j *joining) until(step func() (bool, error), missing func() string) error {
	begin := time.Now()
	for yielded := begin; ; {
		done, err := step()
		if done || err != nil {
			return err
		}
		if time.Now().After(j.deadline) {
			return j.c.errorf(report.Peer, "connect", "rank %d of %d: not connected within %v with %s", j.c.rank, j.c.n, j.c.ctx.Timeout, missing()).
				Try("all ranks must call connect; look at their logs, and see WEFT_CONNECT_TIMEOUT")
		}
		switch since := time.Since(begin); {
		case j.measures && since < tick:
			if time.Since(yielded) > glance {
				yield()
				yielded = time.Now()
			}
		case since > spin:
			doze()
		}
	}
}
