package stall

import "time"

// pace is how often comms are looked at, and what lasts long.
type pace struct {
	least    time.Duration // a wait that is told
	every    time.Duration // from one look to the next
	lapse    time.Duration // between two looks: this process has stood still itself
	patience time.Duration // for a reply
}

// newPace is that of waits which are told when they have lasted for least.
func newPace(least time.Duration) pace {
	every := max(min(least/8, time.Second/2), time.Second/10)
	return pace{least: least, every: every, lapse: max(4*every, time.Second), patience: max(4*every, time.Second)}
}
