package faults

import (
	"strings"
	"testing"
)

// effects are the knobs whose effect only a host sees: a setting, and what it
// ends a wait with. A test of internal/knob reads the names.
var effects = []struct {
	name, value string
	see         func(p *peer) (answer func() string)
	with        string // without, it waits
}{
	{"WEFT_ACCEPT_TIMEOUT", "1", (*peer).acceptsNobody, "no peer came within 1s"},
}

// The call of the host that has the setting ends while that of the one without still waits.
func TestKnobsHaveTheirEffect(t *testing.T) {
	for _, e := range effects {
		without, with := start(t, "without", 4), start(t, "with", 4, e.name+"="+e.value)
		pending, ends := e.see(without), e.see(with)
		if got := ends(); !strings.Contains(got, e.with) {
			t.Errorf("%s=%s: %q, want %q", e.name, e.value, got, e.with)
		}
		waits := make(chan string, 1)
		go func() { waits <- pending() }()
		select {
		case got := <-waits:
			t.Errorf("%s unset: %q, want that it waits", e.name, got)
		default:
		}
		without.h.Kill()
		<-waits
	}
}

// acceptsNobody makes the call that blocks, and returns what ends it.
func (p *peer) acceptsNobody() (answer func() string) {
	_, lc := p.listen()
	answered := make(chan string, 1)
	go func() {
		if _, err := p.n.Accept(lc); err != nil {
			answered <- err.Error()
		}
		close(answered)
	}()
	return func() string { return <-answered }
}
