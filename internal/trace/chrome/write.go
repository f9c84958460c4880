// Package chrome writes a drawn trace as the JSON of Chrome's trace events, which
// many viewers read.
package chrome

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"weft/internal/trace/draw"
)

// event is one of the format's. Times are in microseconds.
type event struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Time     json.Number    `json:"ts,omitempty"`
	Duration json.Number    `json:"dur,omitempty"`
	ID       uint64         `json:"id,omitempty"`
	Bind     string         `json:"bp,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// Write writes the picture.
func Write(w io.Writer, p *draw.Picture) error {
	out := &writer{w: bufio.NewWriterSize(w, 1<<20)}
	out.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	for i, pr := range p.Processes {
		out.process(i, pr)
	}
	// Of events at one time, readers take those first that stand first: an arrow must leave before it arrives.
	for _, arrows := range []bool{true, false} {
		for _, l := range out.lanes {
			if draw.Sends(l.slices) == arrows {
				out.pid, out.tid = l.pid, l.tid
				for i := range l.slices {
					out.slice(&l.slices[i])
				}
			}
		}
	}
	out.raw("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// lane is a thread of the file: slices that do not overlap.
type lane struct {
	pid, tid int
	slices   []draw.Slice
}

type writer struct {
	w     *bufio.Writer
	err   error
	some  bool // events have been written
	pid   int
	tid   int
	lanes []lane
}

func (w *writer) raw(text string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(text)
	}
}

func (w *writer) event(e event) {
	e.PID, e.TID = w.pid, w.tid
	b, err := json.Marshal(e)
	if err != nil && w.err == nil {
		w.err = err
	}
	if w.some {
		w.raw(",")
	}
	w.some = true
	w.raw("\n")
	w.raw(string(b))
}

func (w *writer) say(name string, args map[string]any) {
	w.event(event{Phase: "M", Name: name, Args: args})
}

// process numbers are ours: those of several machines may be the same.
func (w *writer) process(i int, p *draw.Process) {
	w.pid, w.tid = i+1, 0
	w.say("process_name", map[string]any{"name": p.Name})
	w.say("process_sort_index", map[string]any{"sort_index": i})
	for _, l := range p.Labels {
		w.say("process_labels", map[string]any{"labels": l})
	}
	w.tracks("", p.Tracks)
}

// tracks are threads, for the format knows no tracks below others.
func (w *writer) tracks(above string, tracks []*draw.Track) {
	for _, t := range tracks {
		name := above + t.Name
		for _, slices := range t.Lanes() {
			w.tid++
			w.say("thread_name", map[string]any{"name": name})
			w.say("thread_sort_index", map[string]any{"sort_index": w.tid})
			w.lanes = append(w.lanes, lane{w.pid, w.tid, slices})
		}
		w.tracks(name+" / ", t.Tracks)
	}
}

func (w *writer) slice(s *draw.Slice) {
	e := event{Phase: "X", Name: s.Name, Category: s.Category, Time: micro(s.From), Duration: micro(s.To - s.From)}
	if len(s.Args) > 0 {
		e.Args = map[string]any{}
		for _, a := range s.Args {
			e.Args[a.Name] = a.Value
		}
	}
	w.event(e)
	if s.Out != 0 {
		w.event(event{Phase: "s", Name: "message", Category: "message", Time: micro(s.From), ID: s.Out})
	}
	for _, id := range s.In {
		w.event(event{Phase: "f", Bind: "e", Name: "message", Category: "message", Time: micro(s.From), ID: id})
	}
	for i := range s.Inner {
		w.slice(&s.Inner[i])
	}
}

func micro(ns uint64) json.Number {
	return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000))
}
