// Package top shows what connections did between two looks at the files in which
// processes count.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/internal/metrics"
	"weft/internal/owner"
)

// Look is what the files told at one moment.
type Look struct {
	At    time.Time
	files []*metrics.File
	lives []metrics.Life
	sums  [][]*metrics.Sum
}

// Take looks at files now; here says how processes of this machine are.
func Take(files []*metrics.File, here func(*owner.Owner) owner.Life, now time.Time) *Look {
	l := &Look{At: now, files: files}
	for _, f := range files {
		l.lives = append(l.lives, metrics.LifeOf(f, here, now))
		l.sums = append(l.sums, f.Sums())
	}
	return l
}

// Row is what all connections between two devices did, as one end counts it.
type Row struct {
	Process     string       `json:"process"` // its rank, or host and number
	Host        string       `json:"host"`
	PID         uint64       `json:"pid"`
	State       metrics.Life `json:"state"`
	Direction   string       `json:"direction"`
	Network     string       `json:"network"`
	Device      string       `json:"device"`
	Peer        string       `json:"peer"`
	PeerDevice  string       `json:"peer_device"`
	Connections int          `json:"connections"`
	Lanes       int          `json:"lanes"`
	Messages    float64      `json:"messages_per_second"`
	Bytes       float64      `json:"bytes_per_second"`
	P50         float64      `json:"p50_seconds"` // of the messages between the looks; 0: there were none
	P99         float64      `json:"p99_seconds"`
	InFlight    uint64       `json:"in_flight"`
	Failed      uint64       `json:"failed"` // between the looks
	Waited      float64      `json:"waited"` // part of the time in which a send found no receive
	Waits       float64      `json:"waits_seconds"`
	Total       uint64       `json:"messages"` // ever
}

// View is what was done between two looks.
type View struct {
	Seconds   float64 `json:"seconds"`
	Uncounted uint64  `json:"connections_uncounted"` // ever: they are in no row
	Rows      []Row   `json:"rows"`
}

// Between compares two looks. What is new in the second has done all that it counted.
func Between(before, now *Look) *View {
	type end struct {
		process [16]byte
		key     metrics.Key
	}
	earlier := map[end]*metrics.Sum{}
	for i, f := range before.files {
		for _, s := range before.sums[i] {
			earlier[end{f.Process, s.Key}] = s
		}
	}
	v := &View{Seconds: now.At.Sub(before.At).Seconds(), Rows: []Row{}}
	ranks := map[string]string{}
	for _, f := range now.files {
		if f.Ranks > 0 {
			ranks[address(f.Host, f.PID)] = fmt.Sprintf("rank %d", f.Rank)
		}
	}
	called := func(host string, pid uint64) string {
		return cmp.Or(ranks[address(host, pid)], address(host, pid))
	}
	for i, f := range now.files {
		v.Uncounted += f.Uncounted
		for _, s := range now.sums[i] {
			var none metrics.Sum
			was := cmp.Or(earlier[end{f.Process, s.Key}], &none)
			d := s.Counts.Since(&was.Counts)
			r := Row{
				Process: called(f.Host, f.PID), Host: f.Host, PID: f.PID, State: now.lives[i],
				Direction: s.Direction(), Network: s.Network(), Device: s.Device, Peer: called(s.Peer, uint64(s.PeerPID)), PeerDevice: s.PeerDevice,
				Connections: s.Connections, Lanes: s.Lanes, InFlight: s.InFlight, Waits: s.Waits.Seconds(), Failed: d.Failed, Total: s.Counts.Messages,
				P50: d.Quantile(0.5).Seconds(), P99: d.Quantile(0.99).Seconds(),
			}
			if v.Seconds > 0 {
				r.Messages, r.Bytes = float64(d.Messages)/v.Seconds, float64(d.Bytes)/v.Seconds
				// A wait that lasts is counted when it ends; then all of it.
				r.Waited = min(1, (float64(d.Waited)/1e9+min(r.Waits, v.Seconds))/v.Seconds)
			}
			v.Rows = append(v.Rows, r)
		}
	}
	return v
}

func address(host string, pid uint64) string { return fmt.Sprintf("%s:%d", host, pid) }

// Orders are what rows can be sorted by, the most first.
var Orders = []string{"bytes", "messages", "p99", "waits", "name"}

var orders = map[string]func(a, b *Row) int{
	"bytes":    func(a, b *Row) int { return cmp.Compare(b.Bytes, a.Bytes) },
	"messages": func(a, b *Row) int { return cmp.Compare(b.Messages, a.Messages) },
	"p99":      func(a, b *Row) int { return cmp.Compare(b.P99, a.P99) },
	"waits":    func(a, b *Row) int { return cmp.Or(cmp.Compare(b.Waits, a.Waits), cmp.Compare(b.Waited, a.Waited)) },
	"name":     func(a, b *Row) int { return 0 },
}

// Sort sorts by one of Orders.
func (v *View) Sort(by string) {
	slices.SortStableFunc(v.Rows, func(a, b Row) int {
		return cmp.Or(orders[by](&a, &b), naturally(a.Process, b.Process), naturally(a.Peer, b.Peer), cmp.Compare(b.Direction, a.Direction),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.PeerDevice, b.PeerDevice))
	})
}

// naturally has rank 2 before rank 10.
func naturally(a, b string) int {
	if strings.HasPrefix(a, "rank ") && strings.HasPrefix(b, "rank ") {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}
