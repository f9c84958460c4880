package perf

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Style is how a report is written as text.
type Style struct {
	Gbits bool // bandwidths in Gb/s of 1e9 bits, as perftest's --report_gbits has it; else in MB/s of 2^20 bytes, as perftest has it
}

// bandwidth is a value in the style's unit.
func (s Style) bandwidth(gbs float64) float64 {
	if s.Gbits {
		return gbs * 8
	}
	return gbs * 1e9 / (1 << 20)
}

func (s Style) unit() string {
	if s.Gbits {
		return "Gb/sec"
	}
	return "MB/sec"
}

// figure has four digits, or all those before the point.
func figure(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return fmt.Sprint(v)
	}
	return strconv.FormatFloat(v, 'f', max(0, 3-int(math.Floor(math.Log10(math.Abs(v))))), 64)
}

// Text writes the report: perftest's columns for pairs, tables of all pairs for a matrix.
func (r *Report) Text(w io.Writer, s Style) error {
	t := &lines{w: w}
	r.head(t, s)
	if r.Matrix {
		r.grids(t, s)
	} else {
		r.columns(t, s)
	}
	for _, row := range r.Rows {
		if row.Wrong > 0 {
			t.printf("wrong: %s of %d bytes from %s to %s through %s\n", counted(row.Wrong, "message"), row.Bytes, r.portName(row.From), r.portName(row.To), r.library(row.Library))
		}
	}
	for _, c := range r.Compared {
		t.printf("compared: %s\n", r.wasAndIs(c))
	}
	for _, f := range r.Findings {
		t.printf("behind: %s\n", f)
	}
	for _, f := range r.Worse {
		t.printf("worse: %s\n", f)
	}
	if r.Matrix && len(r.Findings) == 0 {
		t.printf("no port and no pair falls behind the others\n")
	}
	return t.err
}

// lines keeps the first error of many writes.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) printf(format string, a ...any) {
	if _, err := fmt.Fprintf(l.w, format, a...); l.err == nil {
		l.err = err
	}
}

// table is written with its columns under each other, numbers to the right.
func (l *lines) table(rows [][]string) {
	t := tabwriter.NewWriter(l.w, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t") // the writer keeps errors until Flush
	}
	if err := t.Flush(); l.err == nil {
		l.err = err
	}
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// library is a library's name, or its path where the other one has the same name.
func (r *Report) library(i int) string {
	name := filepath.Base(r.Libraries[i])
	for k, other := range r.Libraries {
		if k != i && filepath.Base(other) == name {
			return r.Libraries[i]
		}
	}
	return name
}

var titles = map[Test]string{
	Bandwidth: "bandwidth one way", BothWays: "bandwidth both ways at once, summed", Latency: "time from one end to the other: half of there and back",
	Connects: "connections made at once", CPU: "CPU time of messages one way, of the whole processes",
}

func (r *Report) head(t *lines, s Style) {
	t.printf("# %s", titles[r.Test])
	if r.Window > 0 {
		t.printf(", %s under way", counted(int64(r.Window), "message"))
	}
	t.printf("\n")
	for i := range r.Libraries {
		t.printf("# %s: %s\n", r.library(i), r.Places[0].Tables[i])
	}
	if r.Matrix {
		return
	}
	seen := map[Pair]bool{}
	for _, row := range r.Rows {
		if !seen[row.Pair] {
			seen[row.Pair] = true
			over := ""
			if row.Link != "" {
				over = ": " + row.Link
			}
			t.printf("# %s -> %s%s\n", r.portName(row.From), r.portName(row.To), over)
		}
	}
}

// columns are perftest's, and what it does not tell behind them: the CPU time of both processes, the share of the line, the other
// library's figure.
func (r *Report) columns(t *lines, s Style) {
	var head []string
	switch r.Test {
	case Latency:
		head = []string{"#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]", "99% percentile[usec]", "99.9% percentile[usec]"}
	case Connects:
		head = []string{"#connections", "per second", "t_typical[usec]", "99% percentile[usec]", "t_max[usec]"}
	default:
		head = []string{"#bytes", "#iterations", "BW peak[" + s.unit() + "]", "BW average[" + s.unit() + "]", "MsgRate[Mpps]"}
	}
	head = append(head, "CPU send[usec]", "CPU recv[usec]")
	if r.Test == CPU {
		head = append(head, "send[s/GB]", "recv[s/GB]")
	}
	lined := slices.ContainsFunc(r.Rows, func(row Row) bool { return row.OfLine > 0 })
	if lined {
		head = append(head, "of line")
	}
	several := r.several()
	if several {
		head = append([]string{"#pair"}, head...)
	}
	if len(r.Libraries) > 1 {
		head = append(head, "library", "ratio")
	}
	rows := [][]string{head}
	for i, row := range r.Rows {
		var c []string
		if several {
			c = append(c, fmt.Sprintf("%d->%d", row.From.Rank, row.To.Rank))
		}
		c = append(c, r.cells(row, s)...)
		c = append(c, figure(row.Sender), figure(row.Receiver))
		if r.Test == CPU {
			c = append(c, figure(row.Sender*1e3/float64(row.Bytes)), figure(row.Receiver*1e3/float64(row.Bytes)))
		}
		if lined {
			share := "" // two ranks of one machine, among others
			if row.OfLine > 0 {
				share = fmt.Sprintf("%.0f %%", row.OfLine)
			}
			c = append(c, share)
		}
		if len(r.Libraries) > 1 {
			ratio := ""
			if row.Library > 0 {
				ratio = fmt.Sprintf("%.2f", r.Rows[i-row.Library].Value/row.Value)
			}
			c = append(c, r.library(row.Library), ratio)
		}
		rows = append(rows, c)
	}
	t.table(rows)
	if len(r.Libraries) > 1 {
		t.printf("# ratio: the figure of %s over that of the row's library, in the same rounds\n", r.library(0))
	}
	if several && r.Test != Latency {
		r.sums(t, s)
	}
}

func (r *Report) several() bool {
	for _, row := range r.Rows {
		if row.Pair != r.Rows[0].Pair {
			return true
		}
	}
	return false
}

func (r *Report) cells(row Row, s Style) []string {
	n := strconv.FormatInt(row.Messages, 10)
	switch r.Test {
	case Latency:
		t := row.Times
		return []string{strconv.FormatInt(row.Bytes, 10), n, figure(t.Min), figure(t.Max), figure(t.P50), figure(t.Mean), figure(t.Deviation), figure(t.P99), figure(t.P999)}
	case Connects:
		return []string{n, fmt.Sprintf("%.0f", row.Value), figure(row.Times.P50), figure(row.Times.P99), figure(row.Times.Max)}
	}
	return []string{strconv.FormatInt(row.Bytes, 10), n, figure(s.bandwidth(row.Best)), figure(s.bandwidth(row.Value)), fmt.Sprintf("%.6f", row.Rate/1e6)}
}

// sums are of all pairs that were measured at once.
func (r *Report) sums(t *lines, s Style) {
	for _, size := range r.sizes() {
		for i := range r.Libraries {
			sum := 0.0
			for _, row := range r.Rows {
				if row.Bytes == size && row.Library == i {
					sum += row.Value
				}
			}
			if r.Test == Connects {
				t.printf("# all pairs, %s: %.0f connections per second\n", r.library(i), sum)
			} else {
				t.printf("# all pairs, %s, %s: %s %s\n", sizeName(size), r.library(i), figure(s.bandwidth(sum)), s.unit())
			}
		}
	}
}

// grids are a table for each size: senders down, receivers across.
func (r *Report) grids(t *lines, s Style) {
	ports, name := r.ports()
	t.printf("# rows send, columns receive\n")
	for i, p := range ports {
		t.printf("# %s: %s\n", name[p], r.portName(ports[i]))
	}
	for _, size := range r.sizes() {
		for lib := range r.Libraries {
			unit := s.unit()
			if r.Test == Latency {
				unit = "usec"
			}
			t.printf("\n# %s, %s, %s\n", sizeName(size), unit, r.library(lib))
			cells := map[Pair]Row{}
			for _, row := range r.Rows {
				if row.Bytes == size && row.Library == lib {
					cells[row.Pair] = row
				}
			}
			head := []string{""}
			for _, p := range ports {
				head = append(head, name[p])
			}
			rows := [][]string{head}
			for _, from := range ports {
				line := []string{name[from]}
				for _, to := range ports {
					row, ok := cells[Pair{from, to}]
					switch {
					case !ok:
						line = append(line, "-")
					case row.Others:
						line = append(line, "*")
					case r.Test == Latency:
						line = append(line, figure(row.Value))
					default:
						line = append(line, figure(s.bandwidth(row.Value)))
					}
				}
				rows = append(rows, line)
			}
			t.table(rows)
			if text := r.ofLines(size, lib); text != "" {
				t.printf("# %s\n", text)
			}
		}
	}
	t.printf("\n")
	r.others(t)
}

// ofLines says how much of their lines' rates the pairs of a table reach; "": no rate is known.
func (r *Report) ofLines(size int64, lib int) string {
	var each []float64
	var least Row
	for _, row := range r.Rows {
		if row.Bytes == size && row.Library == lib && row.OfLine > 0 {
			if len(each) == 0 || row.OfLine < least.OfLine {
				least = row
			}
			each = append(each, row.OfLine)
		}
	}
	if each == nil {
		return ""
	}
	return fmt.Sprintf("of the line: %.0f %% in the median, least %.0f %%, %s to %s", median(each), least.OfLine, r.portName(least.From), r.portName(least.To))
}

// others says which cells have no figure because other ports carried what was measured, and which did.
func (r *Report) others(t *lines) {
	_, name := r.ports()
	said := map[Pair]bool{}
	for _, row := range r.Rows {
		if !row.Others || said[row.Pair] {
			continue
		}
		if len(said) == 0 {
			t.printf("# *: no path leads from port to port, and what was measured went by others:\n")
		}
		said[row.Pair] = true
		t.printf("# %s -> %s: %s\n", name[row.From], name[row.To], row.Link)
	}
	if len(said) > 0 {
		t.printf("\n")
	}
}

// ports are those of the rows, by rank and device, with names for the heads of columns: 3.1 is the second port of rank 3.
func (r *Report) ports() (ports []Port, name map[Port]string) {
	name = map[Port]string{}
	for rank, place := range r.Places {
		for d := range place.Devices {
			p := Port{rank, d}
			used := false
			for _, row := range r.Rows {
				used = used || row.From == p || row.To == p
			}
			if used {
				ports = append(ports, p)
				name[p] = fmt.Sprintf("%d.%d", rank, d)
			}
		}
	}
	return ports, name
}

// CSV writes a line for each row, and before them the names of the columns, if there is a head.
func (r *Report) CSV(w io.Writer, head bool) error {
	c := csv.NewWriter(w)
	if head {
		c.Write([]string{"test", "library", "from", "to", "bytes", "messages", "value", "unit", "best", "per_second", "cpu_send_us", "cpu_recv_us", "p99_us", "p999_us", "wrong", "link", "others", "of_line_percent"})
	}
	unit := map[Test]string{Bandwidth: "GB/s", BothWays: "GB/s", CPU: "GB/s", Latency: "us", Connects: "1/s"}[r.Test]
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, row := range r.Rows {
		times := Times{}
		if row.Times != nil {
			times = *row.Times
		}
		ofLine := "" // not known
		if row.OfLine > 0 {
			ofLine = f(row.OfLine)
		}
		c.Write([]string{string(r.Test), r.library(row.Library), r.portName(row.From), r.portName(row.To), strconv.FormatInt(row.Bytes, 10), strconv.FormatInt(row.Messages, 10),
			f(row.Value), unit, f(row.Best), f(row.Rate), f(row.Sender), f(row.Receiver), f(times.P99), f(times.P999), strconv.FormatInt(row.Wrong, 10), row.Link, strconv.FormatBool(row.Others), ofLine})
	}
	c.Flush()
	return c.Error() // of any write
}
