package perf

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/golden"
)

// matrix is one of five machines, each with two ports, whose values f gives.
func matrix(t *testing.T, test Test, f func(p Pair) float64) *Report {
	t.Helper()
	o := Options{Test: test, Matrix: true, Plugins: []string{"/usr/lib/libnccl-net-weft.so"}, Window: 8}
	at := places(5, 2)
	r := newReport(o, at)
	batches, err := o.batches(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		for _, p := range b {
			row := Row{Pair: p, Bytes: 4 << 20}
			s := sample{Us: float64(4<<20) * 100 / f(p) / 1e3, CPU: 500, Count: 100, Times: Times{P50: f(p)}}
			row.add(test, row.Bytes, s, s)
			row.end(test)
			r.Rows = append(r.Rows, row)
		}
	}
	r.end()
	return r
}

// Ports and pairs that fall behind are named, with which way, and nobody else.
func TestOutliers(t *testing.T) {
	for _, c := range []struct {
		name string
		test Test
		f    func(p Pair) float64
		want []string
	}{
		{"all alike", Bandwidth, func(p Pair) float64 { return 12 + 0.1*float64(p.From.Rank) }, nil},
		{"a port sends and receives half", Bandwidth, func(p Pair) float64 {
			if p.From == (Port{3, 1}) || p.To == (Port{3, 1}) {
				return 6
			}
			return 12
		}, []string{"node3 mlx5_1 carries 50 % of what its peers do (4 MiB)"}},
		{"a port sends little", Bandwidth, func(p Pair) float64 {
			if p.From == (Port{0, 0}) {
				return 3
			}
			return 12
		}, []string{"node0 mlx5_0 sends 25 % of what its peers do (4 MiB)"}},
		{"one way between two", Bandwidth, func(p Pair) float64 {
			if p.From == (Port{1, 0}) && p.To == (Port{4, 0}) {
				return 2
			}
			return 10
		}, []string{"node1 mlx5_0 to node4 mlx5_0 carries 20 % of what both do with others (4 MiB)"}},
		{"a slow answer", Latency, func(p Pair) float64 {
			if p.From.Rank == 2 || p.To.Rank == 2 {
				return 20
			}
			return 5
		}, []string{
			"node2 mlx5_0 takes 4.0 times as long as its peers do (4 MiB)", "node2 mlx5_1 takes 4.0 times as long as its peers do (4 MiB)",
		}},
	} {
		if diff := cmp.Diff(append([]string{}, c.want...), matrix(t, c.test, c.f).Findings); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

// halfPort is a cluster whose second port of node 3 carries half.
func halfPort(p Pair) float64 {
	if p.From == (Port{3, 1}) || p.To == (Port{3, 1}) {
		return 5.75
	}
	return 11.5 + 0.05*float64(p.To.Rank)
}

func TestText(t *testing.T) {
	pairs := func(test Test, libraries ...string) *Report {
		o := Options{Test: test, Plugins: libraries, Window: 8, Conns: 1000}
		r := newReport(o, places(2, 1))
		for i := range r.Places {
			r.Places[i].Tables = []string{"ncclNetPlugin_v9", "ncclNetPlugin_v8"}
		}
		for _, size := range []int64{8, 64 << 10, 4 << 20} {
			for lib := range libraries {
				row := Row{Pair: Pair{Port{1, 0}, Port{0, 0}}, Bytes: size, Library: lib, Wrong: int64(lib)}
				for round := range 3 {
					s := sample{Us: (1e3 + float64(size)) * float64(1+lib) * (1 + 0.1*float64(round)), CPU: 7e3, Count: 5000,
						Times: Times{1.5, 2 + float64(round), 2.5, 3, 4, 50, 2.2, 0.25}}
					row.add(test, size, s, s)
				}
				row.end(test)
				r.Rows = append(r.Rows, row)
			}
		}
		r.end()
		return r
	}
	compared := pairs(Bandwidth, "/a/libnccl-net-weft.so")
	old := pairs(Bandwidth, "/b/libnccl-net-weft.so")
	for i := range old.Rows {
		old.Rows[i].Value *= []float64{1, 2, 1.05}[i]
	}
	if err := compared.Compare(old, 0.1); err != nil {
		t.Fatal(err)
	}
	cables := matrix(t, Bandwidth, halfPort)
	for i := range cables.Rows { // port 1 of nodes 0 and 1 have no path to each other
		if row := &cables.Rows[i]; row.From.Device == 1 && row.From.Rank+row.To.Rank == 1 {
			row.Others, row.Link, row.Value, row.OfLine = true, "RoCE mlx5_1 -> mlx5_1 by way of mlx5_0, 1 lane", 1e-3, 0
		}
	}
	cables.Findings = cables.outliers()
	for _, c := range []struct {
		name string
		r    *Report
		s    Style
	}{
		{"cables", cables, Style{}},
		{"bw", pairs(Bandwidth, "/a/libnccl-net-weft.so"), Style{Gbits: true}},
		{"vs", pairs(Bandwidth, "/a/libnccl-net-weft.so", "/b/libnccl-net-other.so"), Style{}},
		{"bibw", pairs(BothWays, "/a/libnccl-net-weft.so"), Style{}},
		{"cpu", pairs(CPU, "/a/libnccl-net-weft.so"), Style{}},
		{"lat", pairs(Latency, "/a/libnccl-net-weft.so"), Style{}},
		{"compared", compared, Style{}},
		{"matrix", matrix(t, Bandwidth, halfPort), Style{}},
	} {
		var text bytes.Buffer
		if err := c.r.Text(&text, c.s); err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join("testdata", c.name+".txt"), text.String())
	}
}

// A document is read as it was written; what is none is refused.
func TestDocuments(t *testing.T) {
	r := matrix(t, Bandwidth, halfPort)
	b, err := json.Marshal(Document{Schema, []*Report{r}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compare(again, 0.01); err != nil || len(r.Compared) != len(r.Rows) || len(r.Worse) > 0 {
		t.Errorf("%v: %d of %d rows are compared, worse: %q", err, len(r.Compared), len(r.Rows), r.Worse)
	}
	for text, want := range map[string]string{
		"{":                        "no report of weft perf",
		"{}":                       "its schema is",
		`{"schema":"weft.perf/1"}`: "has no report",
		`{"schema":"weft.perf/2"}`: "its schema is",
		`{"schema":"weft.perf/1","reports":[{"rows":[{"from":{"rank":1}}]}]}`: "row 0 is of port 0 of rank 1",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	other := matrix(t, Latency, halfPort)
	if err := other.Compare(r, 0.1); err == nil {
		t.Error("a latency is compared with a bandwidth")
	}
	slower := matrix(t, Latency, func(p Pair) float64 { return 2 * halfPort(p) })
	if err := slower.Compare(other, 0.1); err != nil || len(slower.Worse) != len(slower.Rows) || slower.Worse[0] != "node0 mlx5_0 to node1 mlx5_0, 4 MiB: 23.10 us, was 11.55" {
		t.Errorf("%v, %.1q", err, slower.Worse)
	}
}

// Each row says how much of the line it is, where that is known: of a machine of its own none, and both ways there are two lines.
func TestOfLine(t *testing.T) {
	at := places(2, 1)
	speed := float64(at[0].Devices[0].Speed) / 8e3
	for test, want := range map[Test]float64{Bandwidth: 50, BothWays: 25, Latency: 0, CPU: 0, Connects: 0} {
		r := newReport(Options{Test: test, Plugins: []string{"x"}}, at)
		r.Rows = []Row{{Pair: Pair{Port{1, 0}, Port{0, 0}}, Value: speed / 2, Times: &Times{}}, {Pair: Pair{Port{1, 0}, Port{1, 0}}, Value: speed / 2, Times: &Times{}}}
		r.end()
		var csv bytes.Buffer
		if err := r.CSV(&csv, true); err != nil {
			t.Fatal(err)
		}
		text := map[float64]string{50: ",false,50\n", 25: ",false,25\n", 0: ",false,\n"}[want]
		if r.Rows[0].OfLine != want || r.Rows[1].OfLine != 0 || !strings.Contains(csv.String(), "others,of_line_percent\n") || !strings.Contains(csv.String(), text) {
			t.Errorf("%s: %g and %g, want %g\n%s", test, r.Rows[0].OfLine, r.Rows[1].OfLine, want, &csv)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"weft.perf/1","reports":[{"test":"bw","libraries":["x"],"places":[{"host":"a","devices":[{"name":"d"}]}],"rows":[{"bytes":8,"value":1}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var now Report
		if json.Unmarshal(b, &Document{Reports: []*Report{&now}}) == nil {
			_ = now.Compare(r, 0.1)
		}
	})
}

// The page and the picture are well-formed, have a cell for each pair, and show the port that is behind darker.
func TestPage(t *testing.T) {
	reports := []*Report{matrix(t, Bandwidth, halfPort), matrix(t, Latency, func(Pair) float64 { return 3 })}
	for name, write := range map[string]func(io.Writer, []*Report) error{"page": WritePage, "map": WriteMap} {
		var b bytes.Buffer
		if err := write(&b, reports); err != nil {
			t.Fatal(err)
		}
		text := strings.TrimPrefix(b.String(), "<!doctype html>\n")
		d := xml.NewDecoder(strings.NewReader(text))
		d.Strict = true
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		maps := strings.Count(text, "<svg")
		if got := strings.Count(text, "<rect class=") - maps; got != 100*maps {
			t.Errorf("%s: %d cells of %d maps", name, got, maps)
		}
		if got := strings.Count(text, `<rect class="s4"`); got != 8 {
			t.Errorf("%s: %d cells are of half of the median, want 8", name, got)
		}
		if name == "page" && !strings.Contains(text, "node3 mlx5_1 carries 50 %") {
			t.Errorf("the page does not say what is behind")
		}
		if !strings.Contains(text, "46 % of the line") || name == "page" && !strings.Contains(text, "of the line: 92 % in the median, least 46 %, ") {
			t.Errorf("%s does not say how much of the line pairs carry", name)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.01234", 1.23456: "1.235", 12.3456: "12.35", 123.456: "123.5", 12345.6: "12346", math.Inf(1): "+Inf"} {
		if got := figure(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}
