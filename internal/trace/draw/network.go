package draw

import (
	"cmp"
	"fmt"
	"slices"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// arrow is a message of which both ends are known.
type arrow struct {
	id       uint64
	left     uint64 // when it left, in the picture's time
	drawable bool
}

// arrows are those of each receive, and the one of each send.
type arrows struct {
	in  map[*model.Message][]*arrow
	out map[*model.Message]*arrow
}

func (c *canvas) arrows(t *model.Trace) arrows {
	a := arrows{map[*model.Message][]*arrow{}, map[*model.Message]*arrow{}}
	for _, x := range t.Connections {
		for _, p := range x.Pairs {
			one := &arrow{left: c.at(x.Sender.Process, p.Send.From)}
			if one.left > c.at(x.Receiver.Process, p.Receive.To) {
				c.backwards++
			} else {
				c.Arrows++
				one.drawable, one.id = true, uint64(c.Arrows)
			}
			a.in[p.Receive] = append(a.in[p.Receive], one)
			a.out[p.Send] = one
		}
	}
	return a
}

// network draws the process's connections, sends first.
func (c *canvas) network(p *model.Process, a arrows) {
	ends := slices.Clone(p.Ends)
	slices.SortStableFunc(ends, func(x, y *model.End) int {
		return cmp.Compare(map[bool]int{true: 0, false: 1}[x.Sends], map[bool]int{true: 0, false: 1}[y.Sends])
	})
	for _, e := range ends {
		t := c.process[p].track("network").track(link(e))
		for _, m := range e.Messages {
			t.add(c.message(p, m, a))
		}
	}
}

func link(e *model.End) string {
	if !e.Known {
		return fmt.Sprintf("connection %#x", e.Handle)
	}
	way := "receive from"
	if e.Sends {
		way = "send to"
	}
	return fmt.Sprintf("%s %s over %s, %s %#x", way, e.Peer, e.Device, e.NetworkName(), e.Number)
}

func (c *canvas) message(p *model.Process, m *model.Message, a arrows) Slice {
	s := Slice{Name: "receive", Category: "message", From: c.at(p, m.From), To: c.at(p, m.To)}
	var l list
	l.number("bytes", m.Bytes)
	l.number("tag", uint64(m.Tags[0]))
	if m.Group != 0 {
		l.number("group", m.Group)
	}
	if m.End.Sends {
		s.Name = "send"
		if m.Entry != format.AheadEntry {
			l.number("entry", uint64(m.Entry))
		}
		l.flag("ahead", !m.Open && m.Entry == format.AheadEntry)
		if one := a.out[m]; one != nil {
			s.Out = one.id
		}
	} else {
		l.number("entries", uint64(len(m.Tags)))
		c.arrival(&s, a.in[m])
	}
	l.flag("failed", m.Failed)
	l.flag("open", m.Open)
	if m.Open {
		s.Name += " (open)"
	}
	s.Args = l
	return s
}

// arrival divides a receive: before its last message had left, and after. Arrows
// end at the second part, so that they point forward.
func (c *canvas) arrival(s *Slice, in []*arrow) {
	at := s.From
	some := false
	for _, one := range in {
		if one.drawable {
			at = max(at, one.left)
			some = true
		}
	}
	if !some {
		return
	}
	if at > s.From {
		s.Inner = append(s.Inner, Slice{Name: "waits for the sender", Category: "message", From: s.From, To: at})
	}
	data := Slice{Name: "data", Category: "message", From: at, To: s.To}
	for _, one := range in {
		if one.drawable {
			data.In = append(data.In, one.id)
		}
	}
	s.Inner = append(s.Inner, data)
}
