package verbs

import (
	"fmt"
	"slices"
	"sync"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// Event is something that a card said of itself.
type Event struct {
	Kind   ibv.EventKind
	NIC    string
	Device *Device       // events of a port that is in use
	QP     *QP           // events of a queue pair
	CQ     *CQ           // events of a completion queue
	Err    *report.Error // fatal: what the comms that it concerns end with; nil: not fatal
}

// subscribers hear of a card's events, in the order in which they came.
type subscribers struct {
	sync.Mutex
	next int                 // protected
	all  map[int]func(Event) // protected
}

// Subscribe has f called with every event of the device's card, off the data
// path, one at a time; f must not block. A fatal event without QP and CQ
// concerns everything on the card. stop ends it; f may still be running then.
func (d *Device) Subscribe(f func(Event)) (stop func()) {
	s := &d.adapter.events
	s.Lock()
	defer s.Unlock()
	if s.all == nil {
		s.all = map[int]func(Event){}
	}
	n := s.next
	s.next++
	s.all[n] = f
	return func() {
		s.Lock()
		defer s.Unlock()
		delete(s.all, n)
	}
}

// list is who subscribed, in that order.
func (s *subscribers) list() []func(Event) {
	s.Lock()
	defer s.Unlock()
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

// handle turns one event of the library into what it means. The element is
// looked up before the event is given back: until then it cannot be destroyed.
func (a *adapter) handle(raw ibv.AsyncEvent) {
	e := Event{Kind: raw.Kind, NIC: a.name}
	switch raw.Kind {
	case ibv.EventQPFatal, ibv.EventQPReqErr, ibv.EventQPAccessErr, ibv.EventCommEst:
		e.QP, _ = a.owners.find(raw.Element).(*QP)
		if e.QP != nil && raw.Kind != ibv.EventCommEst {
			e.Err = a.fatal(raw.Kind, fmt.Sprintf("QP %d, in state %v", e.QP.Number, e.QP.State()))
		}
	case ibv.EventCQErr:
		if e.CQ, _ = a.owners.find(raw.Element).(*CQ); e.CQ != nil {
			e.Err = a.fatal(raw.Kind, fmt.Sprintf("completion queue of %d entries", e.CQ.Depth))
		}
	case ibv.EventDeviceFatal:
		e.Err = a.fatal(raw.Kind, "all of the device, which new connections leave out until it works again")
	case ibv.EventPortErr, ibv.EventPortActive, ibv.EventLIDChange, ibv.EventPkeyChange, ibv.EventSMChange, ibv.EventClientReregister, ibv.EventGIDChange, ibv.EventSpeedChange:
		e.Device = a.p.portOf(a, raw.Port)
	}
	a.p.lib.AckAsyncEvent(raw)
	if e.Device != nil {
		e.Device.observe(raw.Kind)
	} else {
		a.p.log.Info(report.Net, "%s: %v", a.name, raw.Kind)
	}
	if e.Err != nil && a.p.knobs.Int(knob.IBAsyncEvents) == 0 {
		report.Say(a.p.log, e.Err)
		e.Err = nil
	}
	switch { // before a subscriber ends connections, which the host may make anew at once
	case e.Err != nil && raw.Kind == ibv.EventDeviceFatal:
		a.fails()
		report.Say(a.p.log, e.Err) // whether or not there is a connection that it ends
	case raw.Kind == ibv.EventPortActive:
		a.stirs()
	}
	a.tell(e)
}

func (a *adapter) fatal(kind ibv.EventKind, what string) *report.Error {
	return report.Errorf(report.Host, "asynchronous event", "%v: %s", kind, what).On(a.name).
		Try("see the kernel's log (dmesg) for what the driver says; NCCL_IB_RETURN_ASYNC_EVENTS=0 only logs such events")
}

// portOf finds the device that is a port of the adapter.
func (p *Provider) portOf(a *adapter, port int) *Device {
	for _, d := range p.devices {
		if d.adapter == a && int(d.portNum) == port {
			return d
		}
	}
	return nil
}

const linkDown = "the link is down"

// setDown keeps what question or event n said.
func (d *Device) setDown(why string, n uint64) {
	d.now.Lock()
	defer d.now.Unlock()
	if n > d.now.downOf {
		d.now.down, d.now.downOf = why, n
	}
}

// observe keeps what an event says about a port, for those who choose paths.
func (d *Device) observe(kind ibv.EventKind) {
	log := d.provider.log
	switch kind {
	case ibv.EventPortErr:
		d.setDown(linkDown, d.asks())
		log.Warn("%s port %d: the link went down; connections on it stall until it is back or they time out", d.NIC, d.portNum)
		return
	case ibv.EventPortActive:
		d.setDown("", d.asks())
	}
	log.Info(report.Net, "%s port %d: %v", d.NIC, d.portNum, kind)
	switch kind {
	case ibv.EventPortActive, ibv.EventGIDChange, ibv.EventLIDChange:
		d.renew()
	}
}

// renew reads the port's addresses again, and keeps the old ones where that fails.
func (d *Device) renew() {
	if err := d.RefreshGIDs(); err != nil {
		d.provider.log.Info(report.Net, "%s port %d keeps GID %v: %v", d.NIC, d.portNum, d.GIDs()[0], err)
	}
}
