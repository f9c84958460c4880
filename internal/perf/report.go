package perf

import (
	"cmp"
	"slices"
	"strconv"
)

// Schema names the form of the JSON document; a change that a reader must know of gets another number.
const Schema = "weft.perf/1"

// Document is what is written as JSON: a report for each test.
type Document struct {
	Schema  string    `json:"schema"`
	Reports []*Report `json:"reports"`
}

// Report is what was measured. Times are in microseconds, bandwidths in GB/s of 1e9 bytes.
type Report struct {
	Test      Test       `json:"test"`
	Window    int        `json:"window,omitempty"`
	Conns     int        `json:"conns,omitempty"`
	Libraries []string   `json:"libraries"`
	Places    []Place    `json:"places"` // by rank
	Matrix    bool       `json:"matrix"`
	Rows      []Row      `json:"rows"`
	Findings  []string   `json:"findings"`           // ports and pairs that fall behind the others
	Compared  []Compared `json:"compared,omitempty"` // with an older report
	Worse     []string   `json:"worse,omitempty"`
}

// Times are of a message from one end to the other, or of one connect.
type Times struct {
	Min       float64 `json:"min"`
	P50       float64 `json:"p50"`
	P90       float64 `json:"p90"`
	P99       float64 `json:"p99"`
	P999      float64 `json:"p999"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// Row is one size between one pair through one library: the medians of its rounds.
type Row struct {
	Pair
	Library  int       `json:"library"` // its number among the report's
	Bytes    int64     `json:"bytes"`
	Messages int64     `json:"messages"` // of a round, or connections
	Value    float64   `json:"value"`    // of bw and bibw the bandwidth, of lat the time (p50), of conns connections a second
	Best     float64   `json:"best"`
	OfLine   float64   `json:"of_line_percent,omitempty"` // of the rate of the slower port, of bw and bibw; absent: it is not known
	Rounds   []float64 `json:"rounds"`                    // each one's value
	Rate     float64   `json:"rate"`                      // messages, or connections, a second
	Sender   float64   `json:"cpu_sender"`
	Receiver float64   `json:"cpu_receiver"` // CPU of the process, per message or connection, in us
	Times    *Times    `json:"times,omitempty"`
	Wrong    int64     `json:"wrong"` // messages of those that were looked at

	// What carried it, as the library's log has it: "RoCE mlx5_0 -> mlx5_0, 1 lane"; empty: it does not say.
	Link   string `json:"link,omitempty"`
	Others bool   `json:"others,omitempty"` // and that was not the pair's two ports, as between machines that are cabled directly

	rate, sender, receiver []float64
	times                  []Times
}

// add takes a round's samples.
func (r *Row) add(t Test, size int64, from, to sample) {
	r.Messages = from.Count
	n := float64(from.Count)
	us := max(to.Us, 1e-3)
	switch t {
	case Bandwidth, CPU:
		r.Rounds = append(r.Rounds, float64(size)*n/us/1e3)
	case BothWays: // each way in its own time
		r.Rounds = append(r.Rounds, float64(size)*n/us/1e3+float64(size)*n/max(from.Us, 1e-3)/1e3)
	case Latency:
		r.Rounds, r.times = append(r.Rounds, from.Times.P50), append(r.times, from.Times)
	case Connects:
		us = max(from.Us, 1e-3)
		r.Rounds, r.times = append(r.Rounds, n/us*1e6), append(r.times, from.Times)
	}
	r.rate = append(r.rate, n/us*1e6)
	r.sender, r.receiver = append(r.sender, from.CPU/n), append(r.receiver, to.CPU/n)
}

// end makes medians of the rounds.
func (r *Row) end(t Test) {
	r.Value, r.Best = median(r.Rounds), slices.Max(r.Rounds)
	r.Rate, r.Sender, r.Receiver = median(r.rate), median(r.sender), median(r.receiver)
	if len(r.times) == 0 {
		return
	}
	if t == Latency {
		r.Best = slices.Min(r.Rounds)
	}
	slices.SortFunc(r.times, func(a, b Times) int { return cmp.Compare(a.P50, b.P50) })
	r.Times = &r.times[(len(r.times)-1)/2]
}

func newReport(o Options, places []Place) *Report {
	r := &Report{Test: o.Test, Libraries: o.Plugins, Places: places, Matrix: o.Matrix, Rows: []Row{}, Findings: []string{}}
	switch o.Test {
	case Connects:
		r.Conns = o.Conns
	case Bandwidth, BothWays, CPU:
		r.Window = o.Window
	}
	return r
}

// end sorts what batches have brought, and compares the ports.
func (r *Report) end() {
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.From.Rank, b.From.Rank), cmp.Compare(a.From.Device, b.From.Device), cmp.Compare(a.To.Rank, b.To.Rank), cmp.Compare(a.To.Device, b.To.Device),
			cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Library, b.Library))
	})
	for i := range r.Rows {
		if row := &r.Rows[i]; !row.Others {
			row.OfLine = r.ofLine(*row)
		}
	}
	if r.Matrix {
		r.Findings = append(r.Findings, r.outliers()...)
	}
}

// Wrong is how much of what was looked at came wrong.
func (r *Report) Wrong() (n int64) {
	for _, row := range r.Rows {
		n += row.Wrong
	}
	return n
}

// portName is "node1 mlx5_0"; with the rank where two ranks have one host.
func (r *Report) portName(p Port) string {
	return r.placeName(p.Rank) + " " + r.Places[p.Rank].Devices[p.Device].Name
}

func (r *Report) placeName(rank int) string {
	name := r.Places[rank].Host
	for i, other := range r.Places {
		if i != rank && other.Host == name {
			return name + "#" + strconv.Itoa(rank)
		}
	}
	return name
}

// ofLine is the percentage of the line's rate that a bandwidth is; both ways at once there are two lines. 0: it is none, or the rate is not known.
func (r *Report) ofLine(row Row) float64 {
	line := r.line(row.Pair)
	switch {
	case line == 0 || r.Test != Bandwidth && r.Test != BothWays:
		return 0
	case r.Test == BothWays:
		line *= 2
	}
	return 100 * row.Value / line
}

// line is the rate of the slower port, in GB/s; 0 where it is not known: between two processes of one machine, data takes no line.
func (r *Report) line(p Pair) float64 {
	from, to := r.Places[p.From.Rank], r.Places[p.To.Rank]
	if from.Boot == to.Boot {
		return 0
	}
	return float64(min(from.Devices[p.From.Device].Speed, to.Devices[p.To.Device].Speed)) / 8e3
}
