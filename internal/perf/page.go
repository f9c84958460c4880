package perf

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var pages = template.Must(template.New("page.html").Parse(pageText))

// heatMap is a picture of one size of a matrix: senders down, receivers across. Lengths are in pixels.
type heatMap struct {
	Title          string
	Width, Height  int
	Wide, High     int // of a cell
	Columns, Lines []label
	Upright        bool // names of columns stand
	Cells          []cell
	OfLines        string // what its pairs reach of their lines' rates
}

type label struct {
	Name string
	X, Y int
}

type cell struct {
	X, Y         int
	Shade, About string
	Value        string // "" where there is no room for it
	TextX, TextY int
}

// write puts a text into the middle of a cell, where there is room for it.
func (c *cell) write(room bool, text string, m heatMap) {
	if room {
		c.Value, c.TextX, c.TextY = text, c.X+m.Wide/2, c.Y+m.High/2+4
	}
}

// shadeOf goes from s0, as good as the median, to s5, less than a quarter of it.
func shadeOf(share float64) string {
	for i, least := range []float64{0.9, 0.8, 0.65, 0.5, 0.25} {
		if share >= least {
			return fmt.Sprintf("s%d", i)
		}
	}
	return "s5"
}

// mostWritten are the ports of a map in whose cells there is room for figures.
const mostWritten = 24

// maps are of each size of the first library.
func (r *Report) maps() (all []heatMap) {
	ports, name := r.ports()
	for _, size := range r.sizes() {
		values, ofLine, by := map[Pair]float64{}, map[Pair]float64{}, map[Pair]string{} // by other ports
		var each []float64
		for _, row := range r.Rows {
			switch {
			case row.Library != 0 || row.Bytes != size:
			case row.Others:
				by[row.Pair] = row.Link
			default:
				values[row.Pair], ofLine[row.Pair] = row.Value, row.OfLine
				each = append(each, row.Value)
			}
		}
		const left, top = 90, 60
		m := heatMap{Title: fmt.Sprintf("%s of %s: %s", titles[r.Test], sizeName(size), r.unit()), Wide: 58, High: 26, OfLines: r.ofLines(size, 0)}
		written := len(ports) <= mostWritten
		if !written {
			m.Wide, m.High, m.Upright = 16, 16, true
		}
		m.Width, m.Height = max(420, left+len(ports)*m.Wide+16), top+len(ports)*m.High+16
		usual := median(each)
		for i, from := range ports {
			m.Lines = append(m.Lines, label{name[from], left - 6, top + i*m.High + m.High/2 + 4})
			m.Columns = append(m.Columns, label{name[from], left + i*m.Wide + m.Wide/2, top - 8})
			for j, to := range ports {
				c := cell{X: left + j*m.Wide, Y: top + i*m.High, Shade: "none", About: fmt.Sprintf("%s to %s: not measured", r.portName(from), r.portName(to))}
				if link := by[Pair{from, to}]; link != "" {
					c.About = fmt.Sprintf("%s to %s: no path; what was measured went by others: %s", r.portName(from), r.portName(to), link)
					c.write(written, "*", m)
				}
				if v, ok := values[Pair{from, to}]; ok {
					share := v / usual
					if r.Test == Latency {
						share = usual / v
					}
					c.Shade, c.About = shadeOf(share), fmt.Sprintf("%s to %s: %s %s, %.0f %% of the median", r.portName(from), r.portName(to), figure(v), r.unit(), 100*v/usual)
					if of := ofLine[Pair{from, to}]; of > 0 {
						c.About += fmt.Sprintf(", %.0f %% of the line", of)
					}
					c.write(written, figure(v), m)
				}
				m.Cells = append(m.Cells, c)
			}
		}
		all = append(all, m)
	}
	return all
}

func (r *Report) unit() string {
	if r.Test == Latency {
		return "us"
	}
	return "GB/s"
}

// view is what a page shows.
type view struct {
	Findings []string
	Maps     []heatMap
	Ports    []portRow
}

type portRow struct{ Name, Host, Device string }

// WritePage writes matrices as a page, which needs no network and no scripts.
func WritePage(w io.Writer, reports []*Report) error {
	v := view{Maps: mapsOf(reports)}
	for i, r := range reports {
		for _, f := range r.Findings {
			v.Findings = append(v.Findings, titles[r.Test]+": "+f)
		}
		if i > 0 {
			continue
		}
		ports, name := r.ports()
		for _, p := range ports {
			v.Ports = append(v.Ports, portRow{name[p], r.placeName(p.Rank), r.Places[p.Rank].Devices[p.Device].Name})
		}
	}
	return pages.ExecuteTemplate(w, "page", v)
}

// WriteMap writes the first report's first map as a picture of its own.
func WriteMap(w io.Writer, reports []*Report) error {
	all := mapsOf(reports)
	if len(all) == 0 {
		return fmt.Errorf("there is nothing to draw")
	}
	return pages.ExecuteTemplate(w, "map", all[0])
}

func mapsOf(reports []*Report) (all []heatMap) {
	for _, r := range reports {
		all = append(all, r.maps()...)
	}
	return all
}
