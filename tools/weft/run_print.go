package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/host"
	"weft/internal/ranks"
)

// report prints a run: nccl-tests' columns, or one JSON document at the end.
type report struct {
	*progress
	o       *runOptions
	out     io.Writer
	fileSum string
	file    *os.File // of --output_file, or nil
	begun   time.Time
	tables  []*table // protected by progress.mu, as out's lines are
}

type table struct {
	Table       string             `json:"table"`
	Device      string             `json:"device"`
	Ranks       int                `json:"ranks"`
	Results     []ranks.Result     `json:"results,omitempty"`
	Broadcast   *ranks.FileCopy    `json:"broadcast,omitempty"`
	Collective  string             `json:"collective,omitempty"`
	Collectives []ranks.CollResult `json:"collectives,omitempty"`
	Flushes     *ranks.Flushes     `json:"flushes,omitempty"`
	Links       []ranks.RingLink   `json:"links,omitempty"`
}

func newReport(o *runOptions, stdout, stderr io.Writer) *report {
	return &report{progress: newProgress(stderr), o: o, out: stdout, begun: time.Now()}
}

func (r *report) print(format string, a ...any) {
	r.clear()
	if !r.o.json {
		fmt.Fprintf(r.out, format, a...)
	}
}

func (r *report) Start(symbol, device string, nranks int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &table{Table: symbol, Device: device, Ranks: nranks}
	r.tables = append(r.tables, t)
	r.print("# %s of %s, %d ranks, device %s\n", symbol, filepath.Base(r.o.plugin), nranks, device)
	if r.o.coll != nil {
		t.Collective = string(r.o.coll.Kind)
		r.collHead()
		return
	}
	if len(r.o.sizes) > 0 && len(r.tables) == 1 {
		r.print("#%11s  %12s  %8s  %6s  %10s  %8s  %8s  %6s\n", "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong")
		r.print("#%11s  %12s  %8s  %6s  %10s  %8s  %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)")
	}
}

func (r *report) Busy(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := ""
	if len(r.tables) > 0 {
		line = r.tables[len(r.tables)-1].Table + ": " + what
	}
	r.begins(what, line)
}

func (r *report) Result(res ranks.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[len(r.tables)-1]
	t.Results = append(t.Results, res)
	r.print("%12d  %12d  %8s  %6s  %10.2f  %8.2f  %8.2f  %6d\n", res.Size, res.Count, "float", "sum", res.Time, res.AlgBW, res.BusBW, res.Wrong)
	if res.Wrong > 0 {
		r.print("# wrong: the first at %s\n", res.Where)
	}
}

func (r *report) Broadcast(b ranks.FileCopy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[len(r.tables)-1].Broadcast = &b
	r.print("# %s: %d bytes in %.2f us, %.2f GB/s, reading the file and hashing on every rank included\n", r.o.input, b.Bytes, b.Time, float64(b.Bytes)/b.Time/1e3)
	for rank, sum := range b.Sums {
		verdict := "ok"
		if sum != r.fileSum {
			verdict = "WRONG, the file has " + r.fileSum
		}
		r.print("# rank %d: sha256 %s %s\n", rank, sum, verdict)
	}
}

func (r *report) Flushed(f ranks.Flushes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[len(r.tables)-1].Flushes = &f
	r.print("# %d groups of %d buffers received, each flushed; %d flushes had something to do\n", f.Groups, f.Buffers, f.Requests)
}

func (r *report) Links(l []ranks.RingLink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[len(r.tables)-1].Links = l
}

// links says once for all tables what the data went over.
func (r *report) links() {
	said := map[string]bool{}
	for _, t := range r.tables {
		for _, l := range t.Links {
			if line := l.String(); !said[line] {
				r.print("# %s\n", line)
				said[line] = true
			}
		}
	}
}

// log prints what the plugin says, as far as NCCL would.
func (r *report) log(rank int, l host.LogLine) {
	if l.Level <= r.o.level {
		r.plugin(rank, l)
	}
}

// logLevel is what NCCL_DEBUG asks for. NCCL itself is silent without it; here the plugin is looked at, and warns.
func logLevel(debug string, verbose bool) (int, error) {
	level := 2
	if verbose {
		level = 3
	}
	if debug == "" {
		return level, nil
	}
	asked, known := map[string]int{"NONE": 0, "VERSION": 1, "WARN": 2, "ATTN": 2, "INFO": 3, "ABORT": 4, "TRACE": 5}[strings.ToUpper(debug)] // weft has no ATTN lines
	if !known {
		return 0, fmt.Errorf("NCCL_DEBUG=%s: want VERSION, WARN, ATTN, INFO or TRACE", debug)
	}
	if verbose {
		return max(asked, level), nil
	}
	return asked, nil
}

// levelWord is the name of a level of NCCL's logger.
func levelWord(level int) string { return map[int]string{2: "WARN", 3: "INFO", 5: "TRACE"}[level] }

// ok tells whether everything that came was right.
func (r *report) ok() bool {
	for _, t := range r.tables {
		for _, res := range t.Results {
			if res.Wrong > 0 {
				return false
			}
		}
		if t.Broadcast != nil && r.wrongSums(t.Broadcast) > 0 {
			return false
		}
		if _, wrong := t.collectives(); wrong > 0 {
			return false
		}
	}
	return true
}

// wrongSums is 1 if a rank did not have the file's bytes.
func (r *report) wrongSums(b *ranks.FileCopy) int {
	for _, s := range b.Sums {
		if s != r.fileSum {
			return 1
		}
	}
	return 0
}

// verdict is the last line of a run without a failure.
func (r *report) verdict(err error) {
	if err != nil {
		return
	}
	if r.o.rank > 0 {
		if r.o.join != "" { // by hand, on a terminal of its own
			r.print("# rank %d is through; rank 0 has the results\n", r.o.rank)
		}
		return
	}
	var reduced, wrong int
	for _, t := range r.tables {
		for _, res := range t.Results {
			reduced++
			if res.Wrong > 0 {
				wrong++
			}
		}
		if t.Broadcast != nil {
			reduced++
			wrong += r.wrongSums(t.Broadcast)
		}
		n, bad := t.collectives()
		reduced, wrong = reduced+n, wrong+bad
	}
	what := fmt.Sprintf("%d table%s, %d transfers between %d ranks", len(r.tables), plural(len(r.tables)), reduced, r.o.nranks)
	if wrong > 0 {
		r.print("# WRONG DATA in %d of %s\n", wrong, what)
		return
	}
	if r.o.coll != nil && r.o.coll.Checks == 0 {
		r.print("# not checked (-c 0): %s\n", what)
		return
	}
	r.print("# all data right: %s\n", what)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (r *report) end(err error) {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.o.json {
		r.links()
		r.verdict(err)
		return
	}
	if r.o.rank > 0 {
		return
	}
	doc := struct {
		Schema string   `json:"schema"`
		Plugin string   `json:"plugin"`
		OK     bool     `json:"ok"`
		Error  string   `json:"error,omitempty"`
		SHA256 string   `json:"sha256,omitempty"` // of the file, as read here
		Tables []*table `json:"tables"`
	}{"weft-run/1", r.o.plugin, err == nil && r.ok(), "", r.fileSum, r.tables}
	if err != nil {
		doc.Error = err.Error()
	}
	e := json.NewEncoder(r.out)
	e.SetIndent("", "  ")
	_ = e.Encode(doc) // a closed stdout has nobody to tell
}
