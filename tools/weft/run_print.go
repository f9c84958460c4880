package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"weft/internal/host"
	"weft/internal/ranks"
)

// report prints a run: nccl-tests' columns, or one JSON document at the end.
type report struct {
	o           *runOptions
	out, errOut io.Writer
	terminal    bool
	fileSum     string

	mu     sync.Mutex // protects what follows, and whole lines
	tables []*table
	busy   bool // a progress line stands on the terminal
}

type table struct {
	Table     string           `json:"table"`
	Device    string           `json:"device"`
	Ranks     int              `json:"ranks"`
	Results   []ranks.Result   `json:"results,omitempty"`
	Broadcast *ranks.Broadcast `json:"broadcast,omitempty"`
	Flushes   *ranks.Flushes   `json:"flushes,omitempty"`
}

func newReport(o *runOptions, stdout, stderr io.Writer) *report {
	r := &report{o: o, out: stdout, errOut: stderr}
	if f, ok := stderr.(*os.File); ok {
		st, err := f.Stat()
		r.terminal = err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return r
}

// clear takes the progress line away; the caller holds mu.
func (r *report) clear() {
	if r.busy {
		fmt.Fprint(r.errOut, "\r\x1b[K")
		r.busy = false
	}
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
	r.tables = append(r.tables, &table{Table: symbol, Device: device, Ranks: nranks})
	r.print("# %s of %s, %d ranks, device %s\n", symbol, filepath.Base(r.o.plugin), nranks, device)
	if len(r.o.sizes) > 0 && len(r.tables) == 1 {
		r.print("#%11s  %12s  %8s  %6s  %10s  %8s  %8s  %6s\n", "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong")
		r.print("#%11s  %12s  %8s  %6s  %10s  %8s  %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)")
	}
}

func (r *report) Busy(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.terminal && len(r.tables) > 0 {
		r.clear()
		fmt.Fprintf(r.errOut, "%s: %s ...", r.tables[len(r.tables)-1].Table, what)
		r.busy = true
	}
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

func (r *report) Broadcast(b ranks.Broadcast) {
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

// note is a word about what is being waited for.
func (r *report) note(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	fmt.Fprintf(r.errOut, "# "+format+"\n", a...)
}

// log prints a plugin's warnings, and the rest with -v.
func (r *report) log(rank int, l host.LogLine) {
	if l.Level != 2 && !r.o.verbose {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	fmt.Fprintf(r.errOut, "[rank %d] %s %s:%d %s\n", rank, levelWord(l.Level), l.Func, l.Line, l.Text)
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
		if b := t.Broadcast; b != nil {
			for _, s := range b.Sums {
				if s != r.fileSum {
					return false
				}
			}
		}
	}
	return true
}

func (r *report) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	if !r.o.json || r.o.rank > 0 {
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
