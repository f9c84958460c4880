package draw

import (
	"fmt"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// comm is the track of a communicator in a process.
func (c *canvas) comm(p *model.Process, m *model.Comm) *Track {
	if m == nil {
		return c.process[p].track("no communicator")
	}
	name := fmt.Sprintf("communicator %s, rank %d", m.Of.Label(), m.Rank)
	if m.Of.ID == 0 {
		name = fmt.Sprintf("communicator %d, rank %d", m.Number, m.Rank)
	}
	if m.Of.Ranks > 0 {
		name += fmt.Sprintf(" of %d", m.Of.Ranks)
	}
	return c.process[p].track(name)
}

// event draws one, and what nests in it.
func (c *canvas) event(p *model.Process, e *model.Event) {
	switch e.Type {
	case format.CollAPI, format.P2pAPI, format.KernelLaunch, format.KernelPhase:
		if inside(e) {
			return // its parent draws it
		}
	}
	s := c.slice(e)
	switch e.Type {
	case format.GroupAPI, format.CollAPI, format.P2pAPI, format.KernelLaunch, format.Group:
		c.comm(p, e.In).track("calls").add(s)
	case format.Coll, format.CeColl:
		c.comm(p, e.In).track("collectives").add(s)
	case format.P2p:
		c.comm(p, e.In).track("sends and receives").add(s)
	case format.KernelCh, format.KernelPhase:
		c.channel(p, e).track("kernel").add(s)
	case format.ProxyOp:
		c.channel(p, e).track(direction(e)).add(s)
	case format.ProxyStep:
		c.states(&s, e, stepStates)
		if e.Up == nil {
			c.comm(p, e.In).track("steps").add(s)
		} else {
			c.channel(p, e.Up).track(direction(e.Up) + ", steps").add(s)
		}
	case format.ProxyCtrl:
		th := p.Threads[e.Thread]
		c.states(&s, e, ctrlStates)
		c.process[p].track("threads").track(fmt.Sprintf("%s %d", th.Name, th.TID)).add(s)
	case format.NetPlugin:
		c.process[p].track("network").track(carrier(e)).add(s)
	case format.CeBatch, format.CeSync:
		c.comm(p, e.In).track("copy engines").add(s)
	default:
		c.process[p].track("other").add(s)
	}
}

// inside reports whether the event can be drawn within its parent.
func inside(e *model.Event) bool {
	u := e.Up
	if u == nil || u.Process != e.Process || u.Thread != e.Thread && e.Type != format.KernelPhase || e.From < u.From || e.To > u.To || u.OnGPU != e.OnGPU {
		return false
	}
	switch u.Type {
	case format.GroupAPI, format.CollAPI, format.P2pAPI, format.KernelCh:
		return true
	}
	return false
}

func (c *canvas) slice(e *model.Event) Slice {
	s := Slice{Name: c.title(e), Category: e.TypeName(), From: c.at(e.Process, e.From), To: c.at(e.Process, e.To), Args: args(e)}
	switch e.Type {
	case format.GroupAPI, format.CollAPI, format.P2pAPI, format.KernelCh:
		last := s.From
		for _, d := range e.Down {
			// Those that overlap a sibling stand on tracks of their own.
			if !inside(d) || d.Type == format.Coll || d.Type == format.P2p || d.Type == format.CeColl {
				continue
			}
			in := c.slice(d)
			if in.From < last {
				c.alone(d, in)
				continue
			}
			last = in.To
			s.Inner = append(s.Inner, in)
		}
	}
	return s
}

// alone draws what overlaps its sibling.
func (c *canvas) alone(e *model.Event, s Slice) {
	if e.Type == format.KernelPhase {
		c.channel(e.Process, e).track("kernel").add(s)
		return
	}
	c.comm(e.Process, e.In).track("calls").add(s)
}

func (c *canvas) channel(p *model.Process, e *model.Event) *Track {
	return c.comm(p, e.In).track(fmt.Sprintf("channel %d", e.Channel()))
}

func direction(e *model.Event) string {
	if e.Sends() {
		return "send"
	}
	return "receive"
}

func carrier(e *model.Event) string {
	if e.Flags == format.NetIB {
		return fmt.Sprintf("device %d, QP %d", e.C&0xffff, e.C>>32)
	}
	return fmt.Sprintf("socket %d", e.A&0xffffffff)
}

var stepStates = map[uint32]string{
	8: "waits for the GPU's data", 20: "waits for the receiver", 9: "sends",
	10: "waits for data", 11: "flushes", 12: "waits for the GPU to take it",
}

var ctrlStates = map[uint32]string{13: "idle", 14: "active", 15: "sleeps", 16: "wakes up", 17: "appends", 18: "appended"}

// states draws those that the event was in within it.
func (c *canvas) states(s *Slice, e *model.Event, names map[uint32]string) {
	for i, st := range e.States {
		from, to := max(c.at(e.Process, st.Time), s.From), s.To
		if i+1 < len(e.States) {
			to = min(to, c.at(e.Process, e.States[i+1].Time))
		}
		name := names[st.Number]
		if name == "" {
			name = fmt.Sprintf("state %d", st.Number)
		}
		if from < to {
			s.Inner = append(s.Inner, Slice{Name: name, Category: "state", From: from, To: to})
		}
	}
}
