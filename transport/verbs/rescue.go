package verbs

import (
	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/verbs/ibv"
)

// rescue, deferred at the root of every goroutine and where a goroutine calls
// what is not ours, turns a panic into an error of the card, with the stack in
// the log: a defect must not end the host's process. then tells whom it concerns.
func (a *adapter) rescue(op string, then func(*report.Error)) {
	if r := recover(); r != nil {
		then(task.Panicked(a.p.log, op, a.name, r))
	}
}

// unheard fails everything on the card, of which nobody hears any more.
func (a *adapter) unheard(err *report.Error) {
	a.tell(Event{Kind: ibv.EventDeviceFatal, NIC: a.name, Err: err})
}

// tell calls every subscriber. One that panics hears that it did, so that what
// it stands for fails, and the others are still told.
func (a *adapter) tell(e Event) {
	for _, f := range a.events.list() {
		a.tellOne(f, e, func(err *report.Error) {
			a.tellOne(f, Event{Kind: ibv.EventDeviceFatal, NIC: a.name, Err: err}, func(*report.Error) {})
		})
	}
}

func (a *adapter) tellOne(f func(Event), e Event, then func(*report.Error)) {
	defer a.rescue("handle event", then)
	f(e)
}
