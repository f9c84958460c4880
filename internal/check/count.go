package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"weft/internal/skips"
)

// counter reads a command's output as it comes.
type counter interface {
	io.Writer
	busy() string // what is under way, as far as the output tells
	done() result
}

// shared is a counter that is asked what is under way while it reads.
type shared struct {
	mu sync.Mutex // protects the counter
	counter
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counter.Write(b)
}

func (s *shared) busy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counter.busy()
}

// plain passes the output on.
type plain struct{ out io.Writer }

func (p *plain) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *plain) busy() string                { return "" }
func (p *plain) done() result                { return result{} }

// lines cuts what is written into lines.
type lines struct{ rest []byte }

func (l *lines) feed(b []byte, each func(string)) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return
		}
		each(string(l.rest[:i]))
		l.rest = l.rest[i+1:]
	}
}

// tap counts the lines of the Test Anything Protocol and passes on those that are not plainly ok.
type tap struct {
	out io.Writer
	lines
	r result
}

func (t *tap) Write(b []byte) (int, error) {
	t.feed(b, func(line string) {
		switch {
		case strings.HasPrefix(line, "ok ") && strings.Contains(line, "# SKIP"):
			t.r.Skipped++
		case strings.HasPrefix(line, "ok "):
			t.r.Passed++
			return
		case strings.HasPrefix(line, "not ok "):
			t.r.Failed++
		}
		fmt.Fprintln(t.out, line)
	})
	return len(b), nil
}

func (t *tap) busy() string { return "" }
func (t *tap) done() result { return t.r }

// goTest counts the leaves of go test -json: a test with subtests stands for them only. A skip that is not on the list failed.
type goTest struct {
	out   io.Writer
	skips []skips.Skip
	lines
	packages map[string]*pkg
	r        result
}

// pkg is what is known of a package while it is tested.
type pkg struct {
	tests  map[string]string // the outcome, empty while it runs
	output map[string][]string
}

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

func (g *goTest) Write(b []byte) (int, error) {
	g.feed(b, func(line string) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprintln(g.out, line)
			return
		}
		g.take(e)
	})
	return len(b), nil
}

func (g *goTest) take(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(g.out, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := g.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]string{}, output: map[string][]string{}}
		if g.packages == nil {
			g.packages = map[string]*pkg{}
		}
		g.packages[e.Package] = p
	}
	switch e.Action {
	case "run":
		p.tests[e.Test] = ""
	case "output":
		p.output[e.Test] = append(p.output[e.Test], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			g.close(e, p)
			return
		}
		p.tests[e.Test] = e.Action
		if e.Action != "pass" {
			g.show(p, e.Test)
		}
		if e.Action == "skip" && !g.listed(e, strings.Join(p.output[e.Test], "")) {
			p.tests[e.Test] = "fail"
			fmt.Fprintf(g.out, "%s: %s was skipped, and internal/skips/skips.txt does not say that it may be for this reason\n", e.Package, e.Test)
		}
		delete(p.output, e.Test)
	}
}

func (g *goTest) listed(e event, said string) bool {
	return slices.ContainsFunc(g.skips, func(s skips.Skip) bool { return s.Allows(strings.TrimPrefix(e.Package, "weft/"), e.Test, said) })
}

// show prints what a test said, without the lines that only frame it.
func (g *goTest) show(p *pkg, test string) {
	for _, s := range p.output[test] {
		if frame := strings.TrimSpace(s); !strings.HasPrefix(frame, "=== ") {
			fmt.Fprint(g.out, s)
		}
	}
}

// close counts a package that has ended.
func (g *goTest) close(e event, p *pkg) {
	delete(g.packages, e.Package)
	passed, failed := 0, 0
	for test, outcome := range p.tests {
		if parent(p.tests, test) && outcome == "pass" {
			continue
		}
		switch {
		case outcome == "pass":
			passed++
		case outcome == "skip":
			g.r.Skipped++
		case outcome == "" || !failedBelow(p.tests, test):
			failed++
			if outcome == "" {
				fmt.Fprintf(g.out, "%s: %s did not end\n", e.Package, test)
				g.show(p, test)
			}
		}
	}
	if e.Action == "fail" && failed == 0 {
		failed = 1
	}
	if e.Action == "fail" {
		g.show(p, "")
	}
	if passed+failed > 0 {
		fmt.Fprintf(g.out, "%-4s %s: %d passed, %d failed (%.1f s)\n", e.Action, e.Package, passed, failed, e.Elapsed)
	}
	g.r.Passed += passed
	g.r.Failed += failed
}

// parent says whether test has subtests.
func parent(tests map[string]string, test string) bool {
	for other := range tests {
		if strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}

// failedBelow says whether a subtest of test has failed, which then is counted in its place.
func failedBelow(tests map[string]string, test string) bool {
	for other, outcome := range tests {
		if strings.HasPrefix(other, test+"/") && outcome != "pass" && outcome != "skip" {
			return true
		}
	}
	return false
}

// done counts packages that never ended: their test binary was killed.
func (g *goTest) done() result {
	var open []string
	for name := range g.packages {
		open = append(open, name)
	}
	slices.Sort(open)
	for _, name := range open {
		g.close(event{Action: "fail", Package: name}, g.packages[name])
	}
	return g.r
}

// busy names tests that have begun and not ended, those below others alone.
func (g *goTest) busy() string {
	var open []string
	for name, p := range g.packages {
		for test, outcome := range p.tests {
			if outcome == "" && !parent(p.tests, test) {
				open = append(open, path.Base(name)+" "+test)
			}
		}
	}
	slices.Sort(open)
	switch {
	case len(open) == 0:
		return ""
	case len(open) > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(open[:3], ", "), len(open)-3)
	}
	return strings.Join(open, ", ")
}
