package model

import (
	"time"

	"weft/internal/trace/clock"
)

// align makes the machines' clocks one.
func (t *Trace) align() {
	machines := make([]clock.Machine, len(t.Machines))
	for i, m := range t.Machines {
		machines[i] = m.real
	}
	clocks := clock.New(machines)
	for _, c := range t.Connections {
		from, to := c.Sender.Process.Machine, c.Receiver.Process.Machine
		for _, p := range c.Pairs {
			if !p.Receive.Open && !p.Receive.Failed && !p.Send.Failed {
				clocks.Message(from.Index, to.Index, p.Send.From, p.Receive.To)
			}
		}
	}
	offsets := clocks.Align()
	for i, m := range t.Machines {
		m.Clock = offsets[i]
		switch o := offsets[i]; {
		case o.Basis == clock.Wall:
			t.note("clock of %s: no messages both ways join it to %s; its realtime clock was taken, whose error is not known", m.Host, t.Machines[0].Host)
		case o.Crossed > 0:
			t.note("clock of %s: it runs at another rate than that of %s; messages contradict each other by %v", m.Host, t.Machines[o.Via].Host, time.Duration(o.Crossed))
		}
	}
}
