package card

import (
	"fmt"
	"sync"
	"time"

	"weft/internal/report"
)

// outage is a card's time from its fatal event until a queue pair can be made on
// it, or on the device that its driver brings instead. Meanwhile its ports are
// down: new connections go elsewhere.
type outage struct {
	of     *device
	stir   chan struct{} // something changed: try now
	ended  chan struct{} // the card is being closed
	trials sync.WaitGroup

	mu     sync.Mutex
	since  time.Time // zero: there is none; protected by mu, as all below
	events int       // fatal ones so far: a trial that meets one has proved nothing
	last   error     // what the last trial met, nil before the first
	closed bool      // none begins any more
}

// A card is tried so long after its fatal event, then after twice as long, and so on.
const (
	outageRest     = time.Second
	outageRestMost = 8 * time.Second
)

// Down says why the card cannot be used at the moment, "" while it can.
func (o *outage) Down() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return ""
	}
	text := fmt.Sprintf("the card reported a fatal error %v ago", time.Since(o.since).Round(time.Second))
	if o.last != nil {
		text += fmt.Sprintf(" and does not work again yet: %v", o.last)
	}
	return text
}

// Fails begins an outage, unless there is one. It ends once trial succeeds.
func (o *outage) Fails(trial func() error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	if !o.since.IsZero() || o.closed {
		return
	}
	o.since, o.last = time.Now(), nil
	o.trials.Go(func() { o.untilItWorks(trial) })
}

// Stir has a card in an outage tried at once.
func (o *outage) Stir() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	select {
	case o.stir <- struct{}{}:
	default:
	}
}

// EndTrials ends an outage for good and waits for a trial.
func (o *outage) EndTrials() {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	o.mu.Unlock()
	if first {
		close(o.ended)
	}
	o.trials.Wait()
}

// untilItWorks tries the card until it works or is closed.
func (o *outage) untilItWorks(trial func() error) {
	defer o.of.Rescue("try a card again", func(*report.Error) {}) // it stays out of use
	for rest := outageRest; ; rest = min(2*rest, outageRestMost) {
		t := time.NewTimer(rest)
		select {
		case <-o.ended:
			t.Stop()
			return
		case <-o.stir:
			t.Stop()
		case <-t.C:
		}
		if took, works := o.tried(trial); works {
			o.of.Lib.Log.Info(report.Net, "%s works again, %v after its fatal error: new connections may use it", o.of.Name, took.Round(time.Second))
			return
		}
	}
}

// tried notes what came of a trial; one that succeeds ends the outage.
func (o *outage) tried(trial func() error) (took time.Duration, works bool) {
	o.mu.Lock()
	before := o.events
	o.mu.Unlock()
	err := trial()
	o.mu.Lock()
	defer o.mu.Unlock()
	took = time.Since(o.since)
	if o.last = err; err != nil || o.events != before {
		return took, false
	}
	o.since = time.Time{}
	select {
	case <-o.stir: // meant for this outage
	default:
	}
	return took, true
}
