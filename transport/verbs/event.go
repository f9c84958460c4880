package verbs

import (
	"fmt"
	"slices"
	"sync"

	"weft/internal/knob"
	"weft/internal/report"
)

// EventKind is enum ibv_event_type.
type EventKind uint32

const (
	EventCQErr            EventKind = 0
	EventQPFatal          EventKind = 1
	EventQPReqErr         EventKind = 2
	EventQPAccessErr      EventKind = 3
	EventCommEst          EventKind = 4
	EventDeviceFatal      EventKind = 8
	EventPortActive       EventKind = 9
	EventPortErr          EventKind = 10
	EventLIDChange        EventKind = 11
	EventPkeyChange       EventKind = 12
	EventSMChange         EventKind = 13
	EventClientReregister EventKind = 17
	EventGIDChange        EventKind = 18
	EventSpeedChange      EventKind = 20
)

var eventNames = [...]string{
	"CQ error", "QP fatal error", "QP request error", "QP access error", "communication established", "SQ drained", "path migrated",
	"path migration error", "device fatal error", "port active", "port error", "LID change", "P_Key change", "SM change", "SRQ error",
	"SRQ limit reached", "last WQE reached", "client reregistration", "GID change", "WQ fatal error", "speed change",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint32(k))
}

// Event is something that a card said of itself.
type Event struct {
	Kind   EventKind
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
func (a *adapter) handle(raw asyncEvent) {
	e := Event{Kind: raw.kind, NIC: a.name}
	switch raw.kind {
	case EventQPFatal, EventQPReqErr, EventQPAccessErr, EventCommEst:
		e.QP, _ = a.owners.find(raw.element).(*QP)
		if e.QP != nil && raw.kind != EventCommEst {
			e.Err = a.fatal(raw.kind, fmt.Sprintf("QP %d, in state %v", e.QP.Number, e.QP.State()))
		}
	case EventCQErr:
		if e.CQ, _ = a.owners.find(raw.element).(*CQ); e.CQ != nil {
			e.Err = a.fatal(raw.kind, fmt.Sprintf("completion queue of %d entries", e.CQ.Depth))
		}
	case EventDeviceFatal:
		e.Err = a.fatal(raw.kind, "all of the device, which new connections leave out until it works again")
	case EventPortErr, EventPortActive, EventLIDChange, EventPkeyChange, EventSMChange, EventClientReregister, EventGIDChange, EventSpeedChange:
		e.Device = a.p.portOf(a, raw.port)
	}
	a.p.lib.ackAsyncEvent(raw)
	if e.Device != nil {
		e.Device.observe(raw.kind)
	} else {
		a.p.log.Info(report.Net, "%s: %v", a.name, raw.kind)
	}
	if e.Err != nil && a.p.knobs.Int(knob.IBAsyncEvents) == 0 {
		report.Say(a.p.log, e.Err)
		e.Err = nil
	}
	switch { // before a subscriber ends connections, which the host may make anew at once
	case e.Err != nil && raw.kind == EventDeviceFatal:
		a.fails()
		report.Say(a.p.log, e.Err) // whether or not there is a connection that it ends
	case raw.kind == EventPortActive:
		a.stirs()
	}
	a.tell(e)
}

func (a *adapter) fatal(kind EventKind, what string) *report.Error {
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
func (d *Device) observe(kind EventKind) {
	log := d.provider.log
	switch kind {
	case EventPortErr:
		d.setDown(linkDown, d.asks())
		log.Warn("%s port %d: the link went down; connections on it stall until it is back or they time out", d.NIC, d.portNum)
		return
	case EventPortActive:
		d.setDown("", d.asks())
	}
	log.Info(report.Net, "%s port %d: %v", d.NIC, d.portNum, kind)
	switch kind {
	case EventPortActive, EventGIDChange, EventLIDChange:
		d.renew()
	}
}

// renew reads the port's addresses again, and keeps the old ones where that fails.
func (d *Device) renew() {
	if err := d.RefreshGIDs(); err != nil {
		d.provider.log.Info(report.Net, "%s port %d keeps GID %v: %v", d.NIC, d.portNum, d.GIDs()[0], err)
	}
}
