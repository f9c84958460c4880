package model_test

import (
	"fmt"
	"slices"
	"testing"

	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

// both are the ends of a connection.
func both() (from, to *rectest.File, a, b *rectest.Thread) {
	from, a = process(1)
	to, b = process(2)
	a.Link(10, 0x1, true, 1, 77, "eth0", "node", 0)
	b.Link(10, 0x2, false, 1, 77, "eth1", "node", 0)
	return from, to, a, b
}

// pairs are the places of sends and the groups of receives that were joined.
func pairs(c *model.Connection) string {
	text := ""
	for _, p := range c.Pairs {
		text += fmt.Sprintf("%d-%d ", slices.Index(c.Sender.Messages, p.Send), p.Receive.Group)
	}
	return text
}

// A grouped receive takes several sends, in whatever order they come.
func TestGroups(t *testing.T) {
	from, to, a, b := both()
	group := b.Message(100, 2, false, 8, 30, 5, 6, 5)
	b.MessageEnd(200, group, 8, 30, 0)
	single := b.Message(101, 2, false, 9, 10, 5)
	b.MessageEnd(201, single, 9, 10, 0)
	b.Message(102, 2, false, 10, 10, 5)
	for i, x := range []struct{ group, entry, tag uint64 }{{8, 2, 5}, {9, 0, 5}, {8, 0, 5}, {8, 1, 5}, {8, 7, 5}, {11, 0, 5}, {9, 1, 5}} {
		m := a.Message(uint64(110+i), 1, true, x.group, 10, x.tag)
		a.MessageEnd(120, m, x.group, 10, x.entry)
	}
	m := build(t, from, to)
	c := m.Connections[0]
	if got := pairs(c); got != "0-8 1-9 2-8 " || c.Unmatched != 5 {
		t.Errorf("pairs %s, %d unmatched", got, c.Unmatched)
	}
	if r := c.Receiver.Messages[2]; !r.Open || r.To != m.Processes[1].Last {
		t.Errorf("the open receive: %+v", r)
	}
	if c.Receiver.Device != "eth1" || c.Receiver.NetworkName() != "TCP" || c.Receiver.Of != c {
		t.Errorf("receiver %+v", c.Receiver)
	}
}

// ahead has sends with tags 5 and 6, of which those in told had their receive, and
// receives of which the second is a grouped one.
func ahead(told ...int) (from, to *rectest.File, a, b *rectest.Thread) {
	from, to, a, b = both()
	takes := []struct{ group, entry uint64 }{{1, 0}, {2, 1}, {2, 0}, {3, 0}, {4, 0}}
	for i, tag := range []uint64{5, 6, 5, 6, 5} {
		if slices.Contains(told, i) {
			m := a.Message(uint64(100+i), 1, true, takes[i].group, 10, tag)
			a.MessageEnd(200, m, takes[i].group, 10, takes[i].entry)
		} else {
			m := a.Message(uint64(100+i), 1, true, 0, 10, tag)
			a.MessageEnd(200, m, 0, 10, format.AheadEntry)
		}
	}
	for i, tags := range [][]uint64{{5}, {5, 6}, {6}, {5}} {
		m := b.Message(uint64(300+i), 2, false, uint64(i+1), 10, tags...)
		b.MessageEnd(400, m, uint64(i+1), 10, 0)
	}
	return from, to, a, b
}

// What left before its receive is in the order of its tag. Where the first messages
// are overwritten, one that had its receive shows how the orders stand.
func TestAhead(t *testing.T) {
	lose := func(f *rectest.File, word int) { f.Bytes[word] = 1 }
	for _, c := range []struct {
		what   string
		told   []int
		damage func(from, to *rectest.File, a, b *rectest.Thread)
		want   string
	}{
		{"whole", nil, nil, "0-1 1-2 2-2 3-3 4-4 "},
		{"overwritten", nil, func(from, to *rectest.File, a, b *rectest.Thread) { lose(to, format.OffLost) }, ""},
		{"overwritten, one of a tag told", []int{2}, func(from, to *rectest.File, a, b *rectest.Thread) { lose(to, format.OffLost) }, "0-1 2-2 4-4 "},
		{"refused", []int{2}, func(from, to *rectest.File, a, b *rectest.Thread) { lose(from, format.OffRefused) }, "2-2 "},
		{"torn", []int{2}, func(from, to *rectest.File, a, b *rectest.Thread) { b.Skip(); b.CommEnd(500) }, "2-2 "},
		{"a receive is missing", []int{2}, func(from, to *rectest.File, a, b *rectest.Thread) { b.Message(500, 2, false, 7, 10, 5) }, "2-2 "},
		{"another thread's", []int{2}, func(from, to *rectest.File, a, b *rectest.Thread) {
			from.Thread(9, "").Message(500, 1, true, 0, 10, 5)
		}, "2-2 "},
		{"told against the order", []int{0, 4}, func(from, to *rectest.File, a, b *rectest.Thread) {
			m := a.Message(104, 1, true, 2, 10, 5)
			a.MessageEnd(200, m, 2, 10, 0)
		}, "0-1 1-2 3-3 4-4 5-2 "},
	} {
		from, to, a, b := ahead(c.told...)
		if c.damage != nil {
			c.damage(from, to, a, b)
		}
		m := build(t, from, to)
		if got := pairs(m.Connections[0]); got != c.want {
			t.Errorf("%s: pairs %q, want %q", c.what, got, c.want)
		}
	}
}

func TestEndsThatCannotBeJoined(t *testing.T) {
	from, to, a, b := both()
	a.Link(20, 0x3, true, 2, 78, "", "", 0)  // alone
	a.Link(20, 0x4, true, 2, 79, "", "", 0)  // two senders
	a.Link(20, 0x5, true, 2, 79, "", "", 0)  //
	b.Link(20, 0x6, false, 2, 79, "", "", 0) //
	a.Message(30, 0x99, true, 0, 1, 0)       // no record of the connection
	m := build(t, from, to)
	if len(m.Connections) != 1 {
		t.Errorf("%d connections", len(m.Connections))
	}
	noted(t, m,
		"1 connections whose other end is in no file",
		"1 connections have a number that several have, and are not joined",
		"1 ends of connections whose first record was overwritten: their peers are not known")
}
