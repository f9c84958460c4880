package event

import (
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// Source is a card that is heard.
type Source struct {
	subscribers
	card   *card.Card
	ports  []*port.Device // of the card, those in use
	reader *reader        // nil: the library has none
}

// Of begins to hear a card. Where its events cannot be read, that is said.
func Of(c *card.Card, ports []*port.Device) *Source {
	s := &Source{card: c, ports: ports}
	s.read()
	return s
}

func (s *Source) read() {
	r, err := newReader(s.card)
	if err != nil {
		report.Say(s.card.Lib.Log, err)
	}
	if s.reader = r; r != nil {
		r.start(s.handle, s.unheard)
	}
}

// Close ends the card's trials and the reading of its events, and closes the card
// as soon as nobody holds it.
func (s *Source) Close() {
	s.card.EndTrials() // one may begin to read anew
	s.reader.stop()
	s.reader = nil
	s.card.Close()
}

// port finds the device that is a port of the card.
func (s *Source) port(number int) *port.Device {
	for _, d := range s.ports {
		if int(d.Number()) == number {
			return d
		}
	}
	return nil
}

// works tries the card.
func (s *Source) works() error {
	return works(s.card, s.ports, func(swap func()) {
		s.reader.stop() // before any lock that a subscriber may want
		swap()
		s.read()
	})
}

// handle turns one event of the library into what it means. The element is
// looked up before the event is given back: until then it cannot be destroyed.
func (s *Source) handle(raw ibv.AsyncEvent) {
	e := Event{Kind: raw.Kind, NIC: s.card.Name}
	switch raw.Kind {
	case ibv.EventQPFatal, ibv.EventQPReqErr, ibv.EventQPAccessErr, ibv.EventCommEst:
		e.QP, _ = s.card.Owner(raw.Element).(*qp.QP)
		if e.QP != nil && raw.Kind != ibv.EventCommEst {
			e.Err = s.fatal(raw.Kind, fmt.Sprintf("QP %d, in state %v", e.QP.Number, e.QP.State()))
		}
	case ibv.EventCQErr:
		if e.CQ, _ = s.card.Owner(raw.Element).(*qp.CQ); e.CQ != nil {
			e.Err = s.fatal(raw.Kind, fmt.Sprintf("completion queue of %d entries", e.CQ.Depth))
		}
	case ibv.EventDeviceFatal:
		e.Err = s.fatal(raw.Kind, "all of the device, which new connections leave out until it works again")
	case ibv.EventPortErr, ibv.EventPortActive, ibv.EventLIDChange, ibv.EventPkeyChange, ibv.EventSMChange, ibv.EventClientReregister, ibv.EventGIDChange, ibv.EventSpeedChange:
		e.Device = s.port(raw.Port)
	}
	s.card.Lib.AckAsyncEvent(raw)
	if e.Device != nil {
		e.Device.Observe(raw.Kind)
	} else {
		s.card.Lib.Log.Info(report.Net, "%s: %v", s.card.Name, raw.Kind)
	}
	if e.Err != nil && s.card.Lib.Knobs.Int(knob.IBAsyncEvents) == 0 {
		report.Say(s.card.Lib.Log, e.Err)
		e.Err = nil
	}
	switch { // before a subscriber ends connections, which the host may make anew at once
	case e.Err != nil && raw.Kind == ibv.EventDeviceFatal:
		s.card.Fails(s.works)
		report.Say(s.card.Lib.Log, e.Err) // whether or not there is a connection that it ends
	case raw.Kind == ibv.EventPortActive:
		s.card.Stir()
	}
	s.tell(s.card, e)
}

func (s *Source) fatal(kind ibv.EventKind, what string) *report.Error {
	return report.Errorf(report.Host, "asynchronous event", "%v: %s", kind, what).On(s.card.Name).
		Try("see the kernel's log (dmesg) for what the driver says; NCCL_IB_RETURN_ASYNC_EVENTS=0 only logs such events")
}

// unheard fails everything on the card, of which nobody hears any more.
func (s *Source) unheard(err *report.Error) {
	s.tell(s.card, Event{Kind: ibv.EventDeviceFatal, NIC: s.card.Name, Err: err})
}
