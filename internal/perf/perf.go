// Package perf measures a network plugin between processes, as perftest measures verbs: bandwidth one way and both ways, latency,
// connects and what they cost the CPU, of two ranks, of many pairs at once, or of every pair of ports after another. What it moves
// is checked.
package perf

import (
	"encoding/json"
	"fmt"
	"time"

	"weft/internal/host"
	"weft/internal/ranks"
)

// Test is what is measured.
type Test string

// The tests.
const (
	Bandwidth Test = "bw"    // messages one way
	BothWays  Test = "bibw"  // messages both ways at once
	Latency   Test = "lat"   // a message there and one back
	Connects  Test = "conns" // connections made at once
	CPU       Test = "cpu"   // as bw, and what the processes use of the CPU is told
)

// Options say what is measured; rank 0's count, but for what is local to a machine.
type Options struct {
	Host    string                         `json:"-"` // the weft-host program
	Plugins []string                       `json:"-"` // libraries, as dlopen takes them: one, or two to be measured beside each other
	Device  string                         `json:"-"` // name or number; none: the first, or in a matrix each
	Abi     int                            `json:"-"` // the table; 0: the newest that a library has
	Log     func(rank int, l host.LogLine) `json:"-"`

	Test     Test          `json:"test"`
	Matrix   bool          `json:"matrix"`    // every pair of ports, one pair of a host at a time
	AllPorts bool          `json:"all_ports"` // of a matrix: also ports of different numbers
	Sizes    []int64       `json:"sizes"`     // bytes
	Iters    int64         `json:"iters"`     // messages of a round; 0: as many as Duration takes
	Duration time.Duration `json:"duration"`  // of a round
	Rounds   int           `json:"rounds"`    // libraries alternate in them
	Window   int           `json:"window"`    // messages under way
	Conns    int           `json:"conns"`     // of Connects
	Check    bool          `json:"check"`     // bytes are looked at, before the rounds
	Limit    time.Duration `json:"limit"`     // of each step
}

// Run is one rank's part. Rank 0 gets the report. The group fails when a rank does.
func Run(g ranks.Group, o Options, busy func(what string)) (r *Report, err error) {
	s := &site{g: g, o: o, busy: busy}
	defer func() {
		if err != nil {
			f := ranks.NewFailure(g.Rank(), s.doing, err)
			g.Abort(f)
			err = f
		}
	}()
	if err := s.agree(); err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.open(); err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	defer close(stop)
	go s.guard(stop)
	places, err := s.meet()
	if err != nil {
		return nil, err
	}
	batches, err := s.o.batches(places)
	if err != nil {
		return nil, err
	}
	r = newReport(s.o, places)
	for i, b := range batches {
		rows, err := s.measure(i, len(batches), b)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, rows...)
	}
	if _, err := g.Gather("measured", nil); err != nil {
		return nil, err
	}
	r.end()
	return r, nil
}

// agree takes rank 0's choice of what is measured.
func (s *site) agree() error {
	all, err := gather(s.g, "options", s.o)
	if err != nil {
		return err
	}
	mine := s.o
	s.o = all[0]
	s.o.Host, s.o.Plugins, s.o.Device, s.o.Abi, s.o.Log = mine.Host, mine.Plugins, mine.Device, mine.Abi, mine.Log
	return nil
}

// gather gives every rank's value to every rank.
func gather[T any](g ranks.Group, name string, mine T) ([]T, error) {
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	parts, err := g.Gather(name, b)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(parts))
	for i, part := range parts {
		if err := json.Unmarshal(part, &all[i]); err != nil {
			return nil, fmt.Errorf("rank %d's %s: %w (do all ranks run the same weft?)", i, name, err)
		}
	}
	return all, nil
}
