package summary

import (
	"cmp"
	"math/bits"
	"slices"

	"weft/internal/trace/clock"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// Link is one direction between two processes over a pair of devices: all the
// connections there.
type Link struct {
	From        string `json:"from"`
	To          string `json:"to"`
	FromDevice  string `json:"from_device"`
	ToDevice    string `json:"to_device"`
	FromProcess int    `json:"from_process"` // of Report's
	ToProcess   int    `json:"to_process"`
	Network     string `json:"network"`
	Connections int    `json:"connections"`
	Messages    int    `json:"messages"`
	Unmatched   int    `json:"unmatched"` // sends and receives of which the other was not found
	Bytes       uint64 `json:"bytes"`
	// From the send's begin, or the receive's if that was later, to the receive's end.
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	// What sends took by the sender's own clock.
	Send50 int64 `json:"send_p50"`
	// How long receives had waited when their sends began.
	ReceiversWaited uint64 `json:"receivers_waited"`
	// How long the steps of senders waited for a receive: they are recorded with net events.
	SendersWaited uint64  `json:"senders_waited"`
	Steps         int     `json:"steps"` // that SendersWaited is known of
	Bound         uint64  `json:"bound"` // of the clocks' error
	Unknown       bool    `json:"bound_unknown"`
	Slower        float64 `json:"slower"`    // than the median of links, message for message of a size; 0: nothing to compare
	Slow          bool    `json:"slow"`      // it is a finding
	Bandwidth     float64 `json:"bandwidth"` // GB/s while messages were under way; 0: not known

	ends  [2]*model.Process
	under []span
	sizes map[int]*took // by the number of bits of the messages' size
}

// took is what messages did, ns: between both ends, and by the sender's own clock;
// and the former with when they came.
type took struct {
	flights, sends []int64
	came           []arrival
}

type arrival struct{ at, ns int64 }

func (r *Report) links(t *model.Trace) []*Link {
	type key struct {
		from, to             *model.Process
		fromDevice, toDevice string
	}
	all := map[key]*Link{}
	waited := stepsThatWait(t)
	order := []*Link{}
	for _, c := range t.Connections {
		k := key{c.Sender.Process, c.Receiver.Process, c.Sender.Device, c.Receiver.Device}
		l := all[k]
		if l == nil {
			l = &Link{
				From: r.Processes[k.from.Index].Label(), To: r.Processes[k.to.Index].Label(), FromDevice: k.fromDevice, ToDevice: k.toDevice,
				FromProcess: k.from.Index, ToProcess: k.to.Index,
				Network: c.Sender.NetworkName(), sizes: map[int]*took{},
			}
			l.ends = [2]*model.Process{k.from, k.to}
			l.clocks(k.from.Machine, k.to.Machine)
			all[k] = l
			order = append(order, l)
		}
		l.Connections++
		l.Unmatched += c.Unmatched
		w := waited[c.Sender]
		l.Steps += w.steps
		l.SendersWaited += w.ns
		for _, p := range c.Pairs {
			if p.Receive.Open || p.Receive.Failed || p.Send.Failed {
				continue
			}
			left, posted := k.from.Machine.At(p.Send.From), k.to.Machine.At(p.Receive.From)
			came := k.to.Machine.At(p.Receive.To)
			ns := came - max(left, posted)
			l.Messages++
			l.Bytes += p.Send.Bytes
			l.ReceiversWaited += uint64(max(0, left-posted))
			l.under = append(l.under, span{came - ns, came})
			l.add(p.Send.Bytes, arrival{came, ns}, int64(p.Send.To-p.Send.From))
		}
	}
	for _, l := range order {
		l.spread()
		l.Bandwidth = bandwidth(l.Bytes, l.under)
	}
	r.accuse(t, compared(order))
	slices.SortStableFunc(order, func(a, b *Link) int { return cmp.Or(cmp.Compare(b.Slower, a.Slower), cmp.Compare(b.P50, a.P50)) })
	r.Links = []Link{}
	for _, l := range order {
		r.Links = append(r.Links, *l)
	}
	return order
}

func (l *Link) add(bytes uint64, flight arrival, send int64) {
	size := bits.Len64(bytes)
	if l.sizes[size] == nil {
		l.sizes[size] = &took{}
	}
	l.sizes[size].flights = append(l.sizes[size].flights, flight.ns)
	l.sizes[size].came = append(l.sizes[size].came, flight)
	l.sizes[size].sends = append(l.sizes[size].sends, send)
}

// spread is that of all sizes.
func (l *Link) spread() {
	var all took
	for _, t := range l.sizes {
		all.flights = append(all.flights, t.flights...)
		all.sends = append(all.sends, t.sends...)
	}
	l.P50, l.P99, l.Send50 = median(all.flights), quantile(all.flights, 0.99), median(all.sends)
}

// clocks are those of two machines, which the same one cannot contradict.
func (l *Link) clocks(from, to *model.Machine) {
	if from == to {
		return
	}
	l.Bound = from.Clock.Bound + to.Clock.Bound
	l.Unknown = from.Clock.Basis == clock.Wall || to.Clock.Basis == clock.Wall
}

// wait is what steps of senders waited for receives.
type wait struct {
	steps int
	ns    uint64
}

// sendPeerWait is the state of a step that has no clear to send.
const sendPeerWait = 20

// stepsThatWait has them by the connection that their net events name.
func stepsThatWait(t *model.Trace) map[*model.End]wait {
	all := map[*model.End]wait{}
	for _, p := range t.Processes {
		ends := map[uint64]*model.End{}
		for _, e := range p.Ends {
			ends[e.Handle] = e
		}
		seen := map[*model.Event]bool{}
		for _, e := range p.Events {
			if e.Type != format.NetPlugin || e.Up == nil || e.Up.Type != format.ProxyStep || seen[e.Up] || ends[e.More[0]] == nil {
				continue
			}
			seen[e.Up] = true
			w := all[ends[e.More[0]]]
			w.steps++
			for _, s := range stays(e.Up) {
				if s.number == sendPeerWait {
					w.ns += s.ns
				}
			}
			all[ends[e.More[0]]] = w
		}
	}
	return all
}
