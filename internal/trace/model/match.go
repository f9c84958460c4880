package model

import (
	"cmp"
	"slices"

	"weft/transport/record/format"
)

// match finds for each send of the connection the receive that took it. Of what the
// receiver had announced, the send has the group's number and its entry of it. What
// left before that is in the order of its tag.
func (c *Connection) match() {
	groups := map[uint64]*Message{}
	twice := map[uint64]bool{}
	for _, r := range c.Receiver.Messages {
		twice[r.Group] = groups[r.Group] != nil || r.Group == 0
		groups[r.Group] = r
	}
	took := map[*Message]entry{}
	for _, s := range c.Sender.Messages {
		r := groups[s.Group]
		if s.Open || s.Failed || s.Entry == format.AheadEntry || r == nil || twice[s.Group] || int(s.Entry) >= len(r.Tags) || r.Tags[s.Entry] != s.Tags[0] {
			continue
		}
		took[s] = entry{s.Group, s.Entry}
		c.pair(s, r)
	}
	if gapless(c.Sender) && gapless(c.Receiver) {
		c.Sure = c.matchAhead(took)
	}
	slices.SortStableFunc(c.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Send.From, b.Send.From), cmp.Compare(a.Send.ID, b.Send.ID))
	})
	for _, e := range []*End{c.Sender, c.Receiver} {
		for _, m := range e.Messages {
			if m.Other == nil {
				c.Unmatched++
			}
		}
	}
}

func (c *Connection) pair(s, r *Message) {
	s.Other = r
	r.Took++
	if r.Other == nil {
		r.Other = s
	}
	c.Pairs = append(c.Pairs, Pair{s, r})
}

// gapless reports whether no message is missing between two that are there. What
// newer records take of one thread's is always the oldest.
func gapless(e *End) bool {
	l := e.Process.Loss
	if l.Refused+l.Torn+l.Unread > 0 {
		return false
	}
	for i, m := range e.Messages {
		if m.Thread != e.Messages[0].Thread || !e.Sends && (m.Group == 0 || i > 0 && m.Group != e.Messages[i-1].Group+1) {
			return false
		}
	}
	return true
}

// whole reports whether the end's first message is there too.
func whole(e *End) bool {
	return e.Process.Loss.Overwritten == 0 && e.Process.orphan == 0
}

// entry is one of a receive.
type entry struct {
	group uint64
	entry uint8
}

// slot is an entry of a receive in the order of its tag.
type slot struct {
	entry
	of *Message
}

// covers reports whether no open message stands where the other end's are gone: then
// one without its other end has none.
func covers(sends []*Message, slots []slot, shift int) bool {
	for i := range max(0, min(-shift, len(sends))) {
		if sends[i].Open {
			return false
		}
	}
	for i := range max(0, min(shift, len(slots))) {
		if slots[i].of.Open {
			return false
		}
	}
	return true
}

// matchAhead joins the sends with a tag to the entries of receives with it, in order.
// Where the first ones are gone, a send that had its receive shows how the orders
// stand to each other. It returns whether every order is known.
func (c *Connection) matchAhead(took map[*Message]entry) bool {
	sends, slots := map[uint32][]*Message{}, map[uint32][]slot{}
	for _, s := range c.Sender.Messages {
		sends[s.Tags[0]] = append(sends[s.Tags[0]], s)
	}
	place := map[entry]int{} // in the order of its tag
	for _, r := range c.Receiver.Messages {
		for i, tag := range r.Tags {
			e := entry{r.Group, uint8(i)}
			place[e] = len(slots[tag])
			slots[tag] = append(slots[tag], slot{e, r})
		}
	}
	sure := true
	for tag := range slots {
		sure = sure && (len(sends[tag]) > 0 || whole(c.Sender))
	}
	for tag, queue := range sends {
		shift, known := 0, whole(c.Sender) && whole(c.Receiver)
		for i, s := range queue {
			e, had := took[s]
			if had && known && place[e]-i != shift {
				known = false // they contradict each other
				break
			}
			if had {
				shift, known = place[e]-i, true
			}
		}
		sure = sure && known && covers(queue, slots[tag], shift)
		for i, s := range queue {
			if to := i + shift; known && to >= 0 && to < len(slots[tag]) && s.Other == nil && !s.Failed && !slots[tag][to].of.Failed {
				c.pair(s, slots[tag][to].of)
			}
		}
	}
	return sure
}
