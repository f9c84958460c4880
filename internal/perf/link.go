package perf

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"weft/internal/host"
	"weft/internal/ranks"
)

// side is which end of a pair a rank is.
type side int

const (
	idle side = iota // in no pair
	sender
	receiver
)

// link is a pair's connection through one library, from this rank's side: comms both ways where the test wants both.
type link struct {
	*end
	side       side
	send, recv host.Ptr
	smh, rmh   host.Ptr
	buf        host.Ptr
	room       int64
	since      int // lines of the log before it
}

// of is this rank's side of the pairs measured at once, and the pair.
func (s *site) of(batch []Pair) (side, int) {
	for i, p := range batch {
		switch s.g.Rank() {
		case p.From.Rank:
			return sender, i
		case p.To.Rank:
			return receiver, i
		}
	}
	return idle, -1
}

// connect makes the links of a batch through one library. All ranks call it.
func (s *site) connect(e *end, batch []Pair) (l *link, err error) {
	l = &link{end: e, since: len(e.h.Logs())}
	var at int
	l.side, at = s.of(batch)
	var dev int
	switch l.side {
	case sender:
		dev = e.like(s.ends[0], batch[at].From.Device)
	case receiver:
		dev = e.like(s.ends[0], batch[at].To.Device)
	}
	there := s.o.Test == BothWays || s.o.Test == Latency // and back
	if err := s.oneWay(l, dev, at, batch, false); err != nil {
		return nil, err
	}
	if there {
		if err := s.oneWay(l, dev, at, batch, true); err != nil {
			return nil, err
		}
	}
	return l, l.register(s.o)
}

// oneWay connects from the sender to the receiver, or back.
func (s *site) oneWay(l *link, dev, at int, batch []Pair, back bool) error {
	listens, connects, peer := receiver, sender, 0
	if back {
		listens, connects = sender, receiver
	}
	if l.side != idle {
		peer = batch[at].To.Rank
		if back {
			peer = batch[at].From.Rank
		}
	}
	var text []byte
	var listen host.Ptr
	if l.side == listens {
		handle, comm, err := l.n.Listen(dev)
		if err != nil {
			return err
		}
		listen = comm
		if text, err = l.h.Read(handle, int64(l.n.HandleSize())); err != nil {
			return err
		}
	}
	all, err := s.g.Gather("handles", text)
	if err != nil {
		return err
	}
	switch l.side {
	case connects:
		handle, err := l.h.Alloc(128)
		if err != nil {
			return err
		}
		if err := l.h.Write(handle, all[peer]); err != nil {
			return err
		}
		if l.send, err = l.n.ConnectPoll(dev, handle, s.o.Limit); err != nil {
			return err
		}
		return l.h.Free(handle)
	case listens:
		if l.recv, err = l.n.AcceptPoll(listen, s.o.Limit); err != nil {
			return err
		}
		return l.n.CloseListen(listen)
	}
	return nil
}

// carried is what a pair's data went over, as both sides' libraries say in their logs.
type carried struct {
	Text   string `json:"text"`
	Others bool   `json:"others"` // not by the two ports
}

// mostText bounds its text: those of all ranks are one frame.
const mostText = 400

// gatherCarried tells all ranks what each pair of a batch went over through each library, by pair and link.
func (s *site) gatherCarried(links []*link, batch []Pair) ([][]carried, error) {
	var mine []carried
	for _, l := range links {
		var o carried
		arrow := map[side]string{sender: ranks.Sends, receiver: ranks.Receives}[l.side]
		if log := l.h.Logs(); arrow != "" {
			of := ranks.LinkOf(slices.Concat(log[:l.opened], log[l.since:]), arrow)
			o.Others = of.Others
			if of.Kind != "" {
				o.Text = of.Text[:min(len(of.Text), mostText)]
			}
		}
		mine = append(mine, o)
	}
	part, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := s.g.Gather("links", part)
	if err != nil {
		return nil, err
	}
	told := make([][]carried, len(all))
	for i := range all {
		err := json.Unmarshal(all[i], &told[i])
		if err == nil && len(told[i]) != len(links) {
			err = fmt.Errorf("%d of them, want %d", len(told[i]), len(links))
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d's links: %w (do all ranks run the same weft?)", i, err)
		}
	}
	pairs := make([][]carried, len(batch))
	for k, p := range batch {
		for i := range links {
			from, to := told[p.From.Rank][i], told[p.To.Rank][i]
			if to.Others && !from.Others {
				from.Text += "; at the other end " + to.Text
			}
			pairs[k] = append(pairs[k], carried{from.Text, from.Others || to.Others})
		}
	}
	return pairs, nil
}

// mostMemory is the most that a side sends from, and the most that it receives into, in bytes: more messages go through it in turn.
const mostMemory = 256 << 20

// register makes one buffer for what is sent and one for what comes.
func (l *link) register(o Options) (err error) {
	if l.side == idle {
		return nil
	}
	var largest int64 = 64
	for _, size := range o.Sizes {
		largest = max(largest, (size+63)/64*64)
	}
	l.room = max(2*largest, min(largest*int64(o.Window), mostMemory))
	if l.buf, err = l.h.Alloc(2 * l.room); err != nil {
		return err
	}
	if err = l.h.FillByte(l.buf, 2*l.room, 0x5a); err != nil { // so that its pages are there
		return err
	}
	if l.send != 0 {
		if l.smh, err = l.n.RegMr(l.send, l.buf, 2*l.room); err != nil {
			return err
		}
	}
	if l.recv != 0 {
		l.rmh, err = l.n.RegMr(l.recv, l.buf, 2*l.room)
	}
	return err
}

// close ends the connections, when all pairs are through.
func (l *link) close() error {
	var errs []error
	if l.send != 0 {
		errs = append(errs, l.n.DeregMr(l.send, l.smh), l.n.CloseSend(l.send))
	}
	if l.recv != 0 {
		errs = append(errs, l.n.DeregMr(l.recv, l.rmh), l.n.CloseRecv(l.recv))
	}
	if l.buf != 0 {
		errs = append(errs, l.h.Free(l.buf))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
