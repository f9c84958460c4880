package perf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
)

// sample is one side's part of a round.
type sample struct {
	Us    float64 `json:"us"`  // from its first call until its last message was done
	CPU   float64 `json:"cpu"` // of its process, in us
	Count int64   `json:"count"`
	Bad   int64   `json:"bad"` // messages, or connections, that brought wrong bytes
	Times Times   `json:"times"`
}

// measure takes the rows of pairs that are measured at the same time.
func (s *site) measure(number, of int, batch []Pair) (rows []Row, err error) {
	if s.o.Test == Connects {
		return s.measureConnects(batch)
	}
	var links []*link
	s.says(s.what("connect", number, of))
	for _, e := range s.ends {
		l, err := s.connect(e, batch)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	for _, size := range s.o.Sizes {
		s.says(s.what(fmt.Sprintf("%s of %d bytes", s.o.Test, size), number, of))
		more, err := s.measureSize(links, batch, size)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	by, err := s.gatherCarried(links, batch)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		o := by[slices.Index(batch, rows[i].Pair)][rows[i].Library]
		rows[i].Link, rows[i].Others = o.Text, o.Others
	}
	for _, l := range links {
		if err := l.close(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (s *site) what(text string, number, of int) string {
	if of == 1 {
		return text
	}
	return fmt.Sprintf("%s (%d of %d)", text, number+1, of)
}

// measureSize goes through the rounds, in which the libraries alternate.
func (s *site) measureSize(links []*link, batch []Pair, size int64) ([]Row, error) {
	counts, wrong := make([]int64, len(links)), make([][]int64, len(links))
	taken := make([][][]sample, len(links)) // by library, round and rank
	for i, l := range links {
		var err error
		if wrong[i], err = s.checked(l, batch, size); err != nil {
			return nil, err
		}
		if counts[i], err = s.enough(l, batch, size); err != nil {
			return nil, err
		}
	}
	for round := range s.o.Rounds {
		for i := range links {
			if round%2 == 1 { // who goes second finds the memory warm
				i = len(links) - 1 - i
			}
			all, err := s.round(links[i], size, counts[i], false)
			if err != nil {
				return nil, err
			}
			taken[i] = append(taken[i], all)
		}
	}
	var rows []Row
	for k, p := range batch {
		for i := range links {
			row := Row{Pair: p, Library: i, Bytes: size, Wrong: wrong[i][k]}
			for _, all := range taken[i] {
				row.add(s.o.Test, size, all[p.From.Rank], all[p.To.Rank])
			}
			row.end(s.o.Test)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// checkedBytes are looked at before the rounds.
const checkedBytes = 8 << 20

// checked moves messages whose bytes are looked at, every way that is measured, and returns how many of each pair's came wrong.
func (s *site) checked(l *link, batch []Pair, size int64) ([]int64, error) {
	wrong := make([]int64, len(batch))
	if !s.o.Check {
		return wrong, nil
	}
	all, err := s.round(l, size, max(2, min(2*s.window(), checkedBytes/max(size, 1))), true)
	if err != nil {
		return nil, err
	}
	for i, p := range batch {
		wrong[i] = all[p.To.Rank].Bad + all[p.From.Rank].Bad
	}
	return wrong, nil
}

// The messages of a round whose time is to be found out.
const (
	fewest         = 4
	mostMessages   = 10_000_000
	mostRoundTrips = 1_000_000 // each has a sample in the host's memory
)

// enough is how many messages take as long as a round shall. All ranks return what the slowest pair's are.
func (s *site) enough(l *link, batch []Pair, size int64) (int64, error) {
	most := int64(mostMessages)
	if s.o.Test == Latency {
		most = mostRoundTrips
	}
	if s.o.Iters > 0 {
		return min(s.o.Iters, most), nil
	}
	n := max(fewest, min(1000, (8<<20)/max(size, 1)))
	for range 3 { // the first is cold, and may be much too short to tell
		all, err := s.round(l, size, n, false)
		if err != nil {
			return 0, err
		}
		var slowest time.Duration
		for _, p := range batch {
			slowest = max(slowest, time.Duration(max(all[p.To.Rank].Us, all[p.From.Rank].Us)*1e3))
		}
		n = max(fewest, min(most, int64(float64(n)*float64(s.o.Duration)/float64(max(slowest, 1)))))
		if slowest > s.o.Duration/3 {
			break
		}
	}
	return n, nil
}

// round has all pairs move count messages at once, and gives every rank's sample to all.
func (s *site) round(l *link, size, count int64, check bool) ([]sample, error) {
	var mine sample
	var err error
	if _, err := s.g.Gather("begin", nil); err != nil { // nobody waits for another's connect or close in his time
		return nil, err
	}
	switch {
	case l.side == idle:
	case s.o.Test == Latency && !check:
		mine, err = s.pingPong(l, size, count)
	default:
		mine, err = s.move(l, size, count, check)
	}
	if err != nil {
		return nil, err
	}
	mine.Count = count
	return gather(s.g, "sample", mine)
}

// loop runs one of the host's loops on the link.
func (s *site) loop(l *link, thread, cmd string, a host.Args) *host.Pending {
	limit := s.o.Limit + s.o.Duration
	return l.h.GoIn(limit+10*time.Second, thread, cmd, append(a, "limit", limit))
}

// window is how many messages are under way at once; a ping-pong has one.
func (s *site) window() int64 { return max(1, int64(s.o.Window)) }

// move sends, receives, or does both at once on a thread for each.
func (s *site) move(l *link, size, count int64, check bool) (m sample, err error) {
	a := host.Args{"size", size, "count", count, "window", s.window(), "span", l.room, "yield", 1}
	if check {
		a = append(a, "check", 1, "seed", 1)
	}
	var sends, recvs *host.Pending
	if l.recv != 0 {
		recvs = s.loop(l, l.n.Data, "bw", append(host.Args{"role", "recv", "comm", l.recv, "mh", l.rmh, "buf", l.buf + host.Ptr(l.room)}, a...))
	}
	if l.send != 0 {
		thread := l.n.Data
		if recvs != nil {
			thread = "progress2"
		}
		sends = s.loop(l, thread, "bw", append(host.Args{"role", "send", "comm", l.send, "mh", l.smh, "buf", l.buf}, a...))
	}
	for _, p := range []*host.Pending{sends, recvs} { // what came counts where both are
		if p == nil {
			continue
		}
		r, e := p.Wait()
		err = errors.Join(err, e)
		m.Us, m.CPU = r.Float("us"), (r.Float("utime")+r.Float("stime"))/1e3
		m.Bad += r.Int("bad")
	}
	return m, err
}

// Round trips before those that are timed: so many, of large messages fewer.
const (
	mostWarm  = 100
	warmBytes = 64 << 20
)

// pingPong is a message there and one back, count times.
func (s *site) pingPong(l *link, size, count int64) (m sample, err error) {
	role := "pong"
	if l.side == sender {
		role = "ping"
	}
	r, err := s.loop(l, l.n.Data, "lat", host.Args{"role", role, "send", l.send, "recv", l.recv, "smh", l.smh, "rmh", l.rmh, "buf", l.buf,
		"size", size, "iters", count, "warm", max(2, min(mostWarm, warmBytes/max(size, 1)))}).Wait()
	if err != nil {
		return m, err
	}
	m.Us, m.CPU = r.Float("us"), (r.Float("utime")+r.Float("stime"))/1e3
	us := func(key string) float64 { return r.Float(key) / 1e3 }
	m.Times = Times{Min: us("min"), P50: us("p50"), P90: us("p90"), P99: us("p99"), P999: us("p999"), Max: us("max"), Mean: us("mean"), Deviation: us("stdev")}
	return m, nil
}

// median of the rounds.
func median(v []float64) float64 { return rounds.Median(v) }
