package top

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weft/internal/metrics"
)

// Screen says how rows are shown.
type Screen struct {
	Rows  int // at most; 0: all
	Width int // of a line; 0: as long as it is
	Color bool
	Order string
}

const (
	dim, red, yellow, bold, plain = "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
)

// Text writes the view as a table.
func (v *View) Text(to io.Writer, s Screen) error {
	v.Sort(s.Order)
	if err := v.summary(to, s); err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "who\t\tpeer\tdevices\tnetwork\tmessages/s\tGB/s\tp50\tp99\tunder way\twaits\t")
	shown := v.Rows
	if s.Rows > 0 && len(shown) > s.Rows {
		shown = shown[:s.Rows]
	}
	for i := range shown {
		r := &shown[i]
		arrow := map[string]string{"send": "->", "receive": "<-"}[r.Direction]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %s %s\t%s\t%s\t%.3f\t%s\t%s\t%d\t%s\t%s\n", r.Process, arrow, r.Peer, r.Device, arrow, r.PeerDevice, r.network(),
			count(r.Messages), r.Bytes/1e9, span(r.P50), span(r.P99), r.InFlight, r.waits(), r.remark())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, line := range slices.Collect(strings.Lines(b.String())) {
		line = s.cut(strings.TrimRight(line, " \n"))
		switch {
		case !s.Color:
		case i == 0:
			line = bold + line + plain
		default:
			line = shown[i-1].color() + line + plain
		}
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	if more := len(v.Rows) - len(shown); more > 0 {
		_, err := fmt.Fprintln(to, s.cut(fmt.Sprintf("... and %d more", more)))
		return err
	}
	return nil
}

// summary is a line about all.
func (v *View) summary(to io.Writer, s Screen) error {
	processes, sent, states := map[string]bool{}, 0.0, map[metrics.Life]map[string]bool{}
	for i := range v.Rows {
		r := &v.Rows[i]
		processes[r.Process] = true
		if states[r.State] == nil {
			states[r.State] = map[string]bool{}
		}
		states[r.State][r.Process] = true
		if r.Direction == "send" {
			sent += r.Bytes
		}
	}
	line := fmt.Sprintf("%d processes", len(processes))
	if len(processes) == 1 {
		line = "1 process"
	}
	for _, state := range []metrics.Life{metrics.Stopped, metrics.Silent, metrics.Ended} {
		if n := len(states[state]); n > 0 {
			line += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if v.Uncounted > 0 {
		line += fmt.Sprintf("; %d connections not counted", v.Uncounted)
	}
	_, err := fmt.Fprintln(to, s.cut(fmt.Sprintf("%s; %.3f GB/s sent in the last %.1fs; by %s", line, sent/1e9, v.Seconds, s.Order)))
	return err
}

// cut is as much of a line as the screen has room for: what goes on in the next would push the last one out.
func (s Screen) cut(line string) string {
	if runes := []rune(line); s.Width > 0 && len(runes) > s.Width {
		return string(runes[:s.Width])
	}
	return line
}

// network has the lanes of each connection where there is more than one.
func (r *Row) network() string {
	name := strings.ToUpper(r.Network)
	if r.Connections != 1 || r.Lanes > 1 {
		return fmt.Sprintf("%s %d/%d", name, r.Connections, r.Lanes)
	}
	return name
}

// waits is the part of the time in which sends found no receive, and for how long one
// has not.
func (r *Row) waits() string {
	if r.Direction == "receive" {
		return ""
	}
	text := fmt.Sprintf("%.0f%%", r.Waited*100)
	if r.Waits >= 1 {
		text += " " + span(r.Waits)
	}
	return text
}

func (r *Row) remark() string {
	var words []string
	if r.State != metrics.Runs {
		words = append(words, string(r.State))
	}
	if r.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", r.Failed))
	}
	return strings.Join(words, ", ")
}

func (r *Row) color() string {
	switch {
	case r.State == metrics.Stopped || r.State == metrics.Silent || r.Failed > 0:
		return red
	case r.State == metrics.Ended:
		return dim
	case r.Waits >= 1:
		return yellow
	}
	return ""
}

// span is a time with three digits.
func span(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	if d == 0 {
		return "-"
	}
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// count is a number with three digits.
func count(n float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e6, "M"}, {1e3, "k"}} {
		if n >= unit.of {
			return fmt.Sprintf("%.3g%s", n/unit.of, unit.name)
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}
