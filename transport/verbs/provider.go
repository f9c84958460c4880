package verbs

import (
	"fmt"
	"sync"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/event"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
	"weft/transport/verbs/port"
)

// Config is what a provider needs from its process.
type Config struct {
	Knobs *knob.Values
	Log   report.Logger

	host *machine.Machine // nil: this machine; tests bring their own, and library
	lib  *ibv.Calls
}

// Provider is libibverbs with the devices that are in use.
type Provider struct {
	lib     *card.Library
	devices []*port.Device
	sources []*event.Source // by card

	closing sync.Once
}

// Open loads the library, opens the devices that the knobs let through and
// chooses their GIDs. An error that wraps ErrNone is one sentence for the log.
func Open(cfg Config) (*Provider, error) {
	if cfg.Knobs == nil {
		cfg.Knobs = knob.Defaults()
	}
	if cfg.Log == nil {
		cfg.Log = report.Discard{}
	}
	if cfg.host == nil {
		cfg.host = machine.This()
	}
	if cfg.Knobs.Int(knob.IBDisable) != 0 {
		return nil, none("NCCL_IB_DISABLE=%d", cfg.Knobs.Int(knob.IBDisable))
	}
	p := &Provider{lib: &card.Library{Calls: cfg.lib, Name: "a test's library", Knobs: cfg.Knobs, Log: cfg.Log, Host: cfg.host, GDR: cfg.host.GDR()}}
	if cfg.lib == nil {
		if err := p.lib.Load(); err != nil {
			err.Err = fmt.Errorf("%w: %w", err.Err, ErrNone)
			return nil, err
		}
	}
	rules, problems := gid.RulesOf(cfg.Knobs)
	for _, line := range problems {
		cfg.Log.Warn("%s", line)
	}
	var err error
	if p.devices, err = discover(p.lib, &rules); err != nil {
		return nil, err
	}
	p.sources = hear(p.devices)
	return p, nil
}

// hear begins to hear the cards of devices, which events change from here on.
func hear(devices []*port.Device) (sources []*event.Source) {
	var cards []*card.Card
	of := map[*card.Card][]*port.Device{}
	for _, d := range devices {
		c := d.Card()
		if of[c] == nil {
			cards = append(cards, c)
		}
		of[c] = append(of[c], d)
	}
	for _, c := range cards {
		sources = append(sources, event.Of(c, of[c]))
	}
	return sources
}

// Devices are the usable ports in NCCL's order; at least one.
func (p *Provider) Devices() []*port.Device { return p.devices }

// Subscribe has f called with every event of every card, off the data path, one of
// a card at a time; f must not block. A fatal event without QP and CQ concerns
// everything on its card. stop ends it; f may still be running then.
func (p *Provider) Subscribe(f func(event.Event)) (stop func()) {
	stops := make([]func(), 0, len(p.sources))
	for _, s := range p.sources {
		stops = append(stops, s.Subscribe(f))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Spare has f give up what nobody needs when a card has no queue pair or no
// completion queue left; f reports whether there was anything. It is set before
// the devices are used.
func (p *Provider) Spare(f func() bool) { p.lib.Spare = f }

// Close ends the readers of events and the trials of cards that failed, and closes
// each card as soon as nothing is left on it; nothing new can be made on one. A
// library that has started never calls it: it keeps its cards for its process.
func (p *Provider) Close() {
	p.closing.Do(func() {
		for _, s := range p.sources {
			s.Close()
		}
	})
}
