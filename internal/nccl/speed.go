package nccl

import (
	"fmt"
	"strings"
	"time"
)

// Speed is how long an operation took, of the batches that rank 0 has timed.
type Speed struct {
	Op            string
	Bytes         int64
	Median, Least float64 // microseconds
}

// Speeds are those that mode speed of the driver has said.
func (r *Run) Speeds() (list []Speed, err error) {
	for _, l := range r.Ranks[0].all() {
		_, text, found := strings.Cut(l, "rank 0: speed ")
		if !found {
			continue
		}
		var s Speed
		if _, err := fmt.Sscanf(text, "%s %d bytes: median %f us, least %f us", &s.Op, &s.Bytes, &s.Median, &s.Least); err != nil {
			return nil, fmt.Errorf("rank 0 says %q, which is no speed: %w", l, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// CPU is what the processes of a run that has ended used.
func (r *Run) CPU() (sum time.Duration) {
	for _, k := range r.Ranks {
		k.mu.Lock()
		if k.ended {
			sum += k.Cmd.ProcessState.UserTime() + k.Cmd.ProcessState.SystemTime()
		}
		k.mu.Unlock()
	}
	return sum
}
