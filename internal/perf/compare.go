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
	Ratio float64 `json:"ratio"` // new to old; of a time old to new: below 1 is worse
}

// Compare finds the rows of this report's first library in an older one, by hosts, devices and sizes; what is
// worse by more than the tolerance, a share, is told apart.
func (r *Report) Compare(old *Report, tolerance float64) error {
	if r.Test != old.Test {
		return fmt.Errorf("it is of %s, and this is %s", old.Test, r.Test)
	}
	was := map[string]Row{}
	for _, row := range old.Rows {
		if row.Library == 0 {
			was[old.key(row)] = row
		}
	}
	for _, row := range r.Rows {
		o, ok := was[r.key(row)]
		if row.Library != 0 || !ok || o.Value <= 0 || row.Value <= 0 {
			continue
		}
		c := Compared{row.Pair, row.Bytes, o.Value, row.Value / o.Value}
		if r.Test == Latency {
			c.Ratio = o.Value / row.Value
		}
		r.Compared = append(r.Compared, c)
		if c.Ratio < 1-tolerance {
			r.Worse = append(r.Worse, fmt.Sprintf("%s to %s, %s: %.0f %% of what it was", r.portName(row.From), r.portName(row.To), sizeName(row.Bytes), 100*c.Ratio))
		}
	}
	if len(r.Compared) == 0 {
		return errors.New("it has no row of the same hosts, devices and sizes")
	}
	return nil
}

func (r *Report) key(row Row) string {
	return fmt.Sprint(r.portName(row.From), " ", r.portName(row.To), " ", row.Bytes)
}
