package verbs

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// outage is a card's time from its fatal event until a queue pair can be made on
// it, or on the device that its driver brings instead. Meanwhile its ports are
// down: new connections go elsewhere.
type outage struct {
	stir  chan struct{} // something changed: try now
	ended chan struct{} // the adapter is being closed
	over  sync.WaitGroup

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

func newOutage() *outage {
	return &outage{stir: make(chan struct{}, 1), ended: make(chan struct{})}
}

// why is the reason not to use the card, "" outside an outage.
func (o *outage) why() string {
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

// fails begins an outage, unless there is one.
func (a *adapter) fails() {
	o := a.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	if !o.since.IsZero() || o.closed {
		return
	}
	o.since, o.last = time.Now(), nil
	o.over.Go(a.untilItWorks)
}

// stirs has a card in an outage tried at once.
func (a *adapter) stirs() {
	o := a.outage
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

// close ends an outage for good and waits for a trial.
func (o *outage) close() {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	o.mu.Unlock()
	if first {
		close(o.ended)
	}
	o.over.Wait()
}

// untilItWorks tries the card until it works or is closed.
func (a *adapter) untilItWorks() {
	o := a.outage
	defer a.rescue("try a card again", func(*report.Error) {}) // it stays out of use
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
		if took, works := o.tried(a.works); works {
			a.p.log.Info(report.Net, "%s works again, %v after its fatal error: new connections may use it", a.name, took.Round(time.Second))
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

// works reports that a card does. A driver that resets its card takes the device
// away, and the context with it, and brings another one that has its name: that
// is opened in its place.
func (a *adapter) works() error {
	err := a.trial()
	if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENODEV) {
		return err
	}
	if e := a.reopen(); e != nil {
		return fmt.Errorf("%w; opening it anew: %w", err, e)
	}
	return a.trial()
}

// reopen opens the device anew, once nothing is left on the old one.
func (a *adapter) reopen() error {
	if err := a.change(nil); err != nil {
		return err
	}
	list, entries, errno := a.p.lib.GetDeviceList()
	if errno != 0 {
		return fail("ibv_get_device_list", a.name, errno, "")
	}
	defer a.p.lib.FreeDeviceList(list)
	i := slices.IndexFunc(entries, func(e ibv.DeviceEntry) bool { return e.Name == a.name })
	if i < 0 {
		return errors.New("the library lists it no more")
	}
	fresh, err := a.p.openDevice(&entries[i])
	if err != nil {
		return err
	}
	a.stopReading() // before any lock that a subscriber may want
	if err = a.change(&fresh); err == nil {
		a.p.log.Info(report.Net, "%s is opened anew", a.name)
	}
	a.p.closeDevice(a.name, fresh) // the one that is not used, whichever that is
	if err := a.startReading(); err != nil {
		report.Say(a.p.log, err)
	}
	return err
}

// change puts another opened device in place of the card's, which the caller
// then has; nil: only if it could.
func (a *adapter) change(o *opened) error {
	for i := range a.domains {
		d := &a.domains[i]
		d.Lock()
		defer d.Unlock()
		if d.pd != nil {
			return errors.New("connections or registrations of before are left on it")
		}
	}
	if o != nil {
		a.life.Lock()
		defer a.life.Unlock()
		a.opened, *o = *o, a.opened
	}
	return nil
}

// trial makes what a connection needs first, ends it, and looks at the ports anew.
func (a *adapter) trial() (err error) {
	var ports []*Device
	for _, d := range a.p.devices {
		if d.adapter == a {
			ports = append(ports, d)
		}
	}
	pd, err := ports[0].AcquirePD()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pd.Release()) }()
	cq, err := pd.NewCQ(2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cq.Close()) }()
	q, err := ports[0].NewQP(pd, QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
	if err != nil {
		return err
	}
	if err := q.Close(); err != nil {
		return err
	}
	for _, d := range ports {
		if err := d.look(); err != nil {
			return err
		}
	}
	return nil
}

// look asks what the events of a port would have said that nobody could hear.
func (d *Device) look() error {
	n := d.asks()
	attr, errno := d.adapter.queryPort(d.portNum)
	if errno != 0 {
		return fail("ibv_query_port", d.Name, errno, "port %d", d.portNum)
	}
	if attr.State != ibv.PortActive {
		d.setDown(linkDown, n)
		return nil
	}
	d.setDown("", n)
	d.renew()
	return nil
}
