package perf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads the first report of a document.
func Read(from io.Reader) (*Report, error) {
	var d Document
	if err := json.NewDecoder(from).Decode(&d); err != nil {
		return nil, fmt.Errorf("no report of weft perf: %w", err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q, and this weft reads %q: write it with weft perf --json", d.Schema, Schema)
	}
	if len(d.Reports) == 0 || d.Reports[0] == nil {
		return nil, errors.New("it has no report")
	}
	r := d.Reports[0]
	for i, row := range r.Rows {
		for _, p := range []Port{row.From, row.To} {
			if p.Rank < 0 || p.Rank >= len(r.Places) || p.Device < 0 || p.Device >= len(r.Places[p.Rank].Devices) {
				return nil, fmt.Errorf("row %d is of port %d of rank %d, which it does not describe", i, p.Device, p.Rank)
			}
		}
	}
	return r, nil
}

// Compared is a row beside the same one of an older report.
type Compared struct {
	Pair
	Bytes int64   `json:"bytes"`
	Old   float64 `json:"old"`
	New   float64 `json:"new"`
	Ratio float64 `json:"ratio"` // new to old, or old to new where less is better: below 1 is worse
}

// Compare finds the rows of this report's first library in an older one, by hosts, devices and sizes; what is
// worse by more than the tolerance, a share, is told apart.
func (r *Report) Compare(old *Report, tolerance float64) error {
	if r.Test != old.Test {
		return fmt.Errorf("it is of %s, and this is %s", old.Test, r.Test)
	}
	was := map[string]Row{}
	for _, row := range old.Rows {
		if row.Library == 0 && !row.Others {
			was[old.key(row)] = row
		}
	}
	for _, row := range r.Rows {
		o, ok := was[r.key(row)]
		if row.Library != 0 || row.Others || !ok || r.Test.counts(o) <= 0 || r.Test.counts(row) <= 0 {
			continue
		}
		c := Compared{row.Pair, row.Bytes, r.Test.counts(o), r.Test.counts(row), 0}
		if c.Ratio = c.New / c.Old; r.Test.less() {
			c.Ratio = c.Old / c.New
		}
		r.Compared = append(r.Compared, c)
		if c.Ratio < 1-tolerance {
			r.Worse = append(r.Worse, r.wasAndIs(c))
		}
	}
	if len(r.Compared) == 0 {
		return errors.New("it has no row of the same hosts, devices and sizes")
	}
	return nil
}

// counts is the figure of a row that a comparison is about.
func (t Test) counts(row Row) float64 {
	if t == CPU {
		return row.Sender + row.Receiver
	}
	return row.Value
}

// less tells whether less of a test's figure is better.
func (t Test) less() bool { return t == Latency || t == CPU }

// wasAndIs is "a to b, 64 KiB: 5.100 us, was 4.900 us".
func (r *Report) wasAndIs(c Compared) string {
	unit := map[Test]string{Latency: "us", CPU: "us of CPU a message", Connects: "connections per second"}[r.Test]
	if unit == "" {
		unit = "GB/s"
	}
	size := ", " + sizeName(c.Bytes)
	if r.Test == Connects {
		size = ""
	}
	return fmt.Sprintf("%s to %s%s: %s %s, was %s", r.portName(c.From), r.portName(c.To), size, figure(c.New), unit, figure(c.Old))
}

func (r *Report) key(row Row) string {
	return fmt.Sprint(r.portName(row.From), " ", r.portName(row.To), " ", row.Bytes)
}
