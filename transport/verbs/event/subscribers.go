package event

import (
	"slices"
	"sync"

	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/ibv"
)

// subscribers hear of a card's events, in the order in which they came.
type subscribers struct {
	mu   sync.Mutex
	next int // protected by mu, as all below
	all  map[int]func(Event)
}

// Subscribe has f called with every event of the card, off the data path, one at
// a time; f must not block. A fatal event without QP and CQ concerns everything on
// the card. stop ends it; f may still be running then.
func (s *subscribers) Subscribe(f func(Event)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[int]func(Event){}
	}
	n := s.next
	s.next++
	s.all[n] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, n)
	}
}

// list is who subscribed, in that order.
func (s *subscribers) list() []func(Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := make([]int, 0, len(s.all))
	for n := range s.all {
		order = append(order, n)
	}
	slices.Sort(order)
	fs := make([]func(Event), 0, len(order))
	for _, n := range order {
		fs = append(fs, s.all[n])
	}
	return fs
}

// tell calls every subscriber. One that panics hears that it did, so that what
// it stands for fails, and the others are still told.
func (s *subscribers) tell(c *card.Card, e Event) {
	for _, f := range s.list() {
		tellOne(c, f, e, func(err *report.Error) {
			tellOne(c, f, Event{Kind: ibv.EventDeviceFatal, NIC: c.Name, Err: err}, func(*report.Error) {})
		})
	}
}

func tellOne(c *card.Card, f func(Event), e Event, then func(*report.Error)) {
	defer c.Rescue("handle event", then)
	f(e)
}
