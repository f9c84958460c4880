package model

import (
	"cmp"
	"slices"

	"weft/transport/record/format"
)

// End is one of a connection of the network.
type End struct {
	Process  *Process
	Handle   uint64
	Sends    bool
	Network  uint8
	Number   uint64 // which both ends know
	Device   string
	Peer     string
	Comm     uint64 // NCCL's id of the communicator, 0: none
	Known    bool   // its record is there
	Doubtful bool   // others have its number, too
	Messages []*Message
	Of       *Connection // nil: the other end was not recorded

}

// NetworkName is how people call it.
func (e *End) NetworkName() string {
	switch e.Network {
	case format.OverTCP >> 8:
		return "TCP"
	case format.OverRDMA >> 8:
		return "RDMA"
	}
	return "network"
}

// Connection is one of which both ends were recorded.
type Connection struct {
	Sender, Receiver *End
	Pairs            []Pair
	Unmatched        int  // sends and receives of which the other was not found
	Sure             bool // where none was found, none is there
}

// Pair is a message as both ends saw it.
type Pair struct{ Send, Receive *Message }

// Message is a request of a connection.
type Message struct {
	End    *End
	ID     uint64
	Thread int      // of its process
	Tags   []uint32 // of its entries, of which a send has one
	Bytes  uint64   // of a receive that has not ended: room
	From   uint64
	To     uint64 // the process's last time, if Open
	Open   bool
	Failed bool
	Group  uint64 // 0: not known
	Entry  uint8  // of a send; format.AheadEntry: it left before its receive was known

	Vain uint64 // of a send for which the host asked before its receive was there: since when at most; 0: it did not

	Other *Message // the receive that took a send, the first send that a receive took; nil: not found
	Took  int      // of a receive: sends that it took
}

// links gathers a process's.
type links struct {
	p        *Process
	byHandle map[uint64]*End
	messages map[uint64]*Message
	vain     map[*Message]int32 // of sends
	stops    []format.Record    // of messages, which another thread may have begun
}

func newLinks(p *Process) *links {
	return &links{p: p, byHandle: map[uint64]*End{}, messages: map[uint64]*Message{}, vain: map[*Message]int32{}}
}

func (l *links) end(handle uint64, sends bool) *End {
	e := l.byHandle[handle]
	if e == nil {
		e = &End{Process: l.p, Handle: handle, Sends: sends}
		l.byHandle[handle] = e
		l.p.Ends = append(l.p.Ends, e)
	}
	return e
}

func (l *links) take(thread int, r format.Record) {
	sends := r.Flags&0xff == format.Sends
	switch r.Kind {
	case format.Link:
		e := l.end(r.ID, sends)
		e.Known, e.Sends, e.Network, e.Number, e.Comm = true, sends, uint8(r.Flags>>8), r.A, r.C
		e.Device, e.Peer = l.p.Text(r.B), l.p.Text(r.B>>32)
	case format.Message:
		e := l.end(r.Parent, sends)
		m := &Message{
			End: e, ID: r.ID, Thread: thread, Tags: tags(r), Bytes: r.B,
			From: r.Time, Open: true, Group: r.A, Entry: format.AheadEntry,
		}
		e.Messages = append(e.Messages, m)
		l.messages[r.ID], l.vain[m] = m, r.Rank
	case format.MessageEnd:
		l.stops = append(l.stops, r)
	}
}

// tags are those of a message's entries.
func tags(r format.Record) []uint32 {
	n := int(r.Flags >> 8 & 0xff)
	if n < 2 {
		return []uint32{uint32(r.C)}
	}
	all := make([]uint32, min(n, 2*len(r.More)))
	for i := range all {
		all[i] = uint32(r.More[i/2] >> (i % 2 * 32))
	}
	return all
}

func (l *links) finish() {
	for _, r := range l.stops {
		m := l.messages[r.ID]
		if m == nil {
			l.p.orphan++
			continue
		}
		m.Open, m.Failed, m.To = false, r.Flags&format.Failed != 0, max(r.Time, m.From)
		m.Group, m.Bytes, m.Entry = r.A, r.B, uint8(min(r.C, format.AheadEntry))
	}
	for _, e := range l.p.Ends {
		slices.SortStableFunc(e.Messages, func(a, b *Message) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID)) })
		for i, m := range e.Messages {
			if i > 0 && l.vain[m] != l.vain[e.Messages[i-1]] {
				m.Vain = e.Messages[i-1].From
			}
			if m.Open {
				m.To = max(l.p.Last, m.From)
			}
		}
	}
	slices.SortStableFunc(l.p.Ends, func(a, b *End) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Handle, b.Handle))
	})
}

// connections joins the ends that have one number and opposite directions.
func (t *Trace) connections() {
	byNumber := map[uint64][2][]*End{}
	var numbers []uint64
	unknown := 0
	for _, p := range t.Processes {
		for _, e := range p.Ends {
			if !e.Known {
				unknown++
				continue
			}
			both, seen := byNumber[e.Number]
			if !seen {
				numbers = append(numbers, e.Number)
			}
			if e.Sends {
				both[0] = append(both[0], e)
			} else {
				both[1] = append(both[1], e)
			}
			byNumber[e.Number] = both
		}
	}
	slices.Sort(numbers)
	alone, doubtful := 0, 0
	for _, n := range numbers {
		both := byNumber[n]
		switch {
		case len(both[0]) > 1 || len(both[1]) > 1:
			doubtful++
			for _, e := range slices.Concat(both[0], both[1]) {
				e.Doubtful = true
			}
			continue
		case len(both[0])+len(both[1]) == 1:
			alone++
			continue
		}
		c := &Connection{Sender: both[0][0], Receiver: both[1][0]}
		c.Sender.Of, c.Receiver.Of = c, c
		c.match()
		t.Connections = append(t.Connections, c)
	}
	if alone > 0 {
		t.note("%d connections whose other end is in no file", alone)
	}
	if doubtful > 0 {
		t.note("%d connections have a number that several have, and are not joined", doubtful)
	}
	if unknown > 0 {
		t.note("%d ends of connections whose first record was overwritten: their peers are not known", unknown)
	}
}
