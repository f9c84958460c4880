package parse

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"weft/gen/model"
)

var (
	includeLine    = regexp.MustCompile(`^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]`)
	onceLine       = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*pragma[ \t]+once\b`)
	pragmaOperator = regexp.MustCompile(`\b_Pragma\b`)
	guardLine      = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[^\n]*\n\s*#[ \t]*define[ \t]+(\w+)`)
)

// inclusions follows #include lines ahead of the preprocessor, which would
// follow a header that includes itself without end. It refuses a circle
// without a guard, and a unit that grows beyond the limit.
//
// Headers are told apart by their text: one file may have several names.
type inclusions struct {
	over  *overlay
	state map[string]int // by text; 1: being followed, 2: done
	cost  map[string]int // bytes after inclusion; a guarded header counts once
}

func checkInclusions(o Options, over *overlay) error {
	in := &inclusions{over: over, state: map[string]int{}, cost: map[string]int{}}
	total := 0
	for _, h := range o.Headers {
		h = path.Clean(h)
		text := over.readAll(h)
		if r := in.follow(h, text); r != nil {
			return Refusals{r}
		}
		if total += in.cost[text]; total > maxBytes {
			return Refusals{tooLarge(model.Pos{File: h, Line: 1, Col: 1})}
		}
	}
	return nil
}

func tooLarge(at model.Pos) *Refusal {
	return &Refusal{Pos: at, What: fmt.Sprintf("with what it includes it has more than %d MiB", maxBytes>>20)}
}

func (in *inclusions) follow(name, text string) *Refusal {
	if in.state[text] == 2 {
		return nil
	}
	in.state[text] = 1
	if r := lexical(name, text); r != nil {
		return r
	}
	cost := len(text)
	for i, line := range strings.Split(text, "\n") {
		m := includeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := model.Pos{File: name, Line: i + 1, Col: 1}
		to := path.Join(path.Dir(name), m[1])
		inner := in.over.readAll(to)
		switch {
		case in.state[inner] == 1 && !guarded(inner):
			return &Refusal{Pos: at, What: fmt.Sprintf("%s includes itself and has no include guard", to)}
		case in.state[inner] == 0 && inner != "":
			if r := in.follow(to, inner); r != nil {
				return r
			}
		}
		if cost += in.cost[inner]; cost > maxBytes {
			return tooLarge(at)
		}
	}
	in.state[text], in.cost[text] = 2, cost
	if guarded(text) {
		in.cost[text] = min(cost, 1<<10)
	}
	return nil
}

// lexical refuses what a lexer may stumble over for ever.
func lexical(name, text string) *Refusal {
	at := func(i int) model.Pos {
		return model.Pos{File: name, Line: 1 + strings.Count(text[:i], "\n"), Col: i - strings.LastIndexByte(text[:i], '\n')}
	}
	for i, c := range []byte(text) {
		if c == 0 || c >= 0x7f && c < 0x80 || c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' && c != '\v' {
			return &Refusal{Pos: at(i), What: fmt.Sprintf("byte %#02x in a header", c)}
		}
	}
	if m := pragmaOperator.FindStringIndex(text); m != nil {
		return &Refusal{Pos: at(m[0]), What: "the _Pragma operator: only #pragma once is understood"}
	}
	if end := strings.TrimRight(text, " \t\r\n"); strings.HasSuffix(end, "\\") {
		return &Refusal{Pos: at(len(end) - 1), What: "the last line continues on a line that is not there"}
	}
	return nil
}

// guarded reports whether a second inclusion of a header is empty.
func guarded(text string) bool {
	if onceLine.MatchString(text) {
		return true
	}
	m := guardLine.FindStringSubmatch(text)
	return m != nil && m[1] == m[2]
}
