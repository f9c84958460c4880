package processor

import (
	"fmt"
	"strings"

	"weft/internal/trace/draw"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// expected is what the reader must find, by the model: of the picture it has what processes and tracks are called,
// and what nests in what.
type expected struct {
	trace   *model.Trace
	picture *draw.Picture
	base    int64
}

func expect(t *model.Trace, p *draw.Picture) *expected {
	e := &expected{trace: t, picture: p}
	for i, pr := range t.Processes {
		if at := pr.Machine.At(pr.First); i == 0 || at < e.base {
			e.base = at
		}
	}
	return e
}

// at is a process's time in the trace's.
func (e *expected) at(p *model.Process, t uint64) int64 { return max(0, p.Machine.At(t)-e.base) }

func (e *expected) processes() (rows []string) {
	for i, p := range e.picture.Processes {
		rows = append(rows, fmt.Sprintf("%d. %s", i+1, p.Name))
	}
	return rows
}

func (e *expected) losses() (rows []string) {
	for _, p := range e.trace.Processes {
		if l := p.Loss; l.Any() {
			rows = append(rows, fmt.Sprintf("%s: lost: %v", e.name(p), l))
		}
	}
	return rows
}

// name is what the picture calls the process.
func (e *expected) name(p *model.Process) string {
	for _, drawn := range e.picture.Processes {
		if drawn.Name == p.Name() || strings.HasSuffix(drawn.Name, "("+p.Name()+")") {
			return drawn.Name
		}
	}
	return p.Name() + ", which is in no picture"
}

func (e *expected) kinds() (rows []string) {
	type sums struct {
		count      int
		from, take int64
	}
	for _, p := range e.trace.Processes {
		all := map[string]*sums{}
		add := func(kind string, from, to uint64) {
			if all[kind] == nil {
				all[kind] = &sums{}
			}
			all[kind].count++
			all[kind].from += e.at(p, from)
			all[kind].take += e.at(p, to) - e.at(p, from)
		}
		for _, ev := range p.Events {
			add(ev.TypeName(), ev.From, ev.To)
		}
		for _, end := range p.Ends {
			for _, m := range end.Messages {
				kind := map[bool]string{true: "send", false: "receive"}[end.Sends]
				if m.Open {
					kind += " (open)"
				}
				add(kind, m.From, m.To)
			}
		}
		for kind, s := range all {
			rows = append(rows, fmt.Sprintf("%s, %s: %d, from %d, take %d", e.name(p), kind, s.count, s.from, s.take))
		}
	}
	return rows
}

// arrows are the messages of which both ends are known, but for those that arrive before they leave, by the clocks.
func (e *expected) arrows() (rows []string) {
	for _, c := range e.trace.Connections {
		from, to := c.Sender.Process, c.Receiver.Process
		for _, p := range c.Pairs {
			left, came := e.at(from, p.Send.From), e.at(to, p.Receive.To)
			if left > came {
				continue
			}
			at := e.at(to, p.Receive.From)
			rows = append(rows, fmt.Sprintf("%s %d+%d -> %s %d+%d", e.name(from), left, e.at(from, p.Send.To)-left, e.name(to), at, came-at))
		}
	}
	return rows
}

func (e *expected) collectives() (rows []string) {
	for _, p := range e.trace.Processes {
		for _, ev := range p.Events {
			if ev.Type != format.Coll {
				continue
			}
			title := ev.Func()
			switch {
			case ev.Captured:
				title += " (graph)"
			case ev.Open:
				title += " (open)"
			case ev.Launch:
				title += " (launch)"
			}
			bytes, _ := ev.Bytes()
			rows = append(rows, fmt.Sprintf("%s %d: %s, %d bytes, %s %s", e.name(p), e.at(p, ev.From), title, bytes, ev.Algorithm(), ev.Protocol()))
		}
	}
	return rows
}

func (e *expected) tracks() (rows []string) {
	for _, p := range e.picture.Processes {
		count := map[string]int{}
		var slices func(track string, depth int, all []draw.Slice)
		slices = func(track string, depth int, all []draw.Slice) {
			for _, s := range all {
				count[fmt.Sprintf("%s: %s, %d deep", p.Name, track, depth)]++
				slices(track, depth+1, s.Inner)
			}
		}
		var tracks func(above string, all []*draw.Track)
		tracks = func(above string, all []*draw.Track) {
			for _, t := range all {
				slices(above+t.Name, 0, t.Slices)
				tracks(above+t.Name+" / ", t.Tracks)
			}
		}
		tracks("", p.Tracks)
		for at, n := range count {
			rows = append(rows, fmt.Sprintf("%s: %d", at, n))
		}
	}
	return rows
}
