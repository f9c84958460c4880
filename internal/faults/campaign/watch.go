package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a fault must be named within.
const (
	detectedWithin = 5 * time.Second
	namedWithin    = 10 * time.Second
	watched        = namedWithin + 2*time.Second
	longWatched    = time.Minute
	beyond         = 3 * time.Second // more is heard after it was named
)

// outcome is what came of a fault.
type outcome struct {
	fault    fault
	by       string
	detected time.Duration // after it was done something was said; 0: nothing was
	named    time.Duration // it was named; 0: it was not
	words    string        // what was said then
	wrong    []string      // what was said of others, or before
	err      error
}

// right reports whether the fault was named in time, and nobody else was; lenient:
// whether it was named.
func (o *outcome) right(lenient bool) bool {
	if lenient {
		return o.err == nil && o.named > 0
	}
	return o.err == nil && o.named > 0 && o.named <= namedWithin && len(o.wrong) == 0
}

func (o outcome) String() string {
	text := fmt.Sprintf("%v: by %s, detected after %.1fs, named after %.1fs", o.fault, o.by, o.detected.Seconds(), o.named.Seconds())
	if o.err != nil {
		text += ", " + o.err.Error()
	}
	if o.words != "" {
		text += "\n    right: " + o.words
	}
	for _, w := range o.wrong {
		text += "\n    wrong: " + w
	}
	return text
}

// have starts a job and has the fault happen to it.
func (f fault) have(ctx context.Context, lenient bool) (o outcome) {
	o = outcome{fault: f}
	for _, p := range f.kind.on {
		if p.program == f.program && p.network == f.network {
			o.by = p.by
		}
	}
	j, err := begin(f.network, f.program, f.ranks, f.seed)
	if err != nil {
		o.err = err
		return o
	}
	defer func() { o.err = errors.Join(o.err, j.end()) }()
	if o.err = sleep(ctx, f.after); o.err != nil {
		return o
	}
	if o.err = j.err(); o.err != nil {
		return o
	}
	done := time.Now()
	if o.err = f.kind.do(j, &f); o.err != nil {
		return o
	}
	limit := watched
	if lenient {
		limit = longWatched
	}
	o.watch(ctx, j, done, limit)
	return o
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// watch reads what is said until the fault was named, and a while longer.
func (o *outcome) watch(ctx context.Context, j *job, done time.Time, limit time.Duration) {
	seen := 0
	for time.Since(done) < limit && (o.named == 0 || time.Since(done) < o.named+beyond) && o.err == nil {
		for _, s := range j.heard()[seen:] {
			seen++
			o.line(j, s, done)
		}
		if o.by == byReport {
			all, texts, err := j.reported()
			for i, c := range all {
				o.take(j, c, time.Since(done), "report: "+texts[i])
			}
			o.err = err
		}
		if err := sleep(ctx, time.Second/4); err != nil {
			o.err = err
		}
	}
}

// line takes one of the log, which may name somebody whatever names the fault.
func (o *outcome) line(j *job, s said, done time.Time) {
	after, text := s.at.Sub(done), fmt.Sprintf("rank %d: %s", s.rank, s.text)
	c := accused(s.text, j.pid(s.rank))
	if m := packet.FindStringSubmatch(s.text); c != nil && m != nil { // it tells the direction
		*c = charge{what: path, pid: j.pid(number(m[1]) - 1), to: j.pid(number(m[2]) - 1)}
	}
	switch {
	case c != nil:
		o.take(j, *c, after, text)
	case after > 0 && o.detected == 0 && strings.Contains(s.text, "has waited"):
		o.detected = after
	}
}

func (o *outcome) take(j *job, c charge, after time.Duration, text string) {
	right := after > 0 && o.fault.kind.right(j, &o.fault, c)
	switch {
	case right && o.named == 0:
		o.named, o.words = after, text
		fallthrough
	case right:
		if o.detected == 0 {
			o.detected = after
		}
	default:
		o.wrong = append(o.wrong, fmt.Sprintf("after %.1fs, %s", after.Seconds(), text))
	}
}
