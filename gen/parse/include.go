package parse

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"weft/gen/model"
)

var (
	includeLine = regexp.MustCompile(`^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]`)
	onceLine    = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*pragma[ \t]+once\b`)
	guardLine   = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[^\n]*\n\s*#[ \t]*define[ \t]+(\w+)`)
)

// inclusions follows #include lines ahead of the preprocessor, which would
// follow a header that includes itself without end. It refuses a circle
// without a guard, and a unit that grows beyond the limit.
type inclusions struct {
	over  *overlay
	state map[string]int // 1: being followed, 2: done
	cost  map[string]int // bytes after inclusion; a guarded header counts once
}

func checkInclusions(o Options, over *overlay) error {
	in := &inclusions{over: over, state: map[string]int{}, cost: map[string]int{}}
	total := 0
	for _, h := range o.Headers {
		h = path.Clean(h)
		if r := in.follow(h); r != nil {
			return Refusals{r}
		}
		if total += in.cost[h]; total > maxBytes {
			return Refusals{{Pos: model.Pos{File: h, Line: 1, Col: 1}, What: fmt.Sprintf("with what it includes it has more than %d MiB", maxBytes>>20)}}
		}
	}
	return nil
}

func (in *inclusions) follow(name string) *Refusal {
	in.state[name] = 1
	text := in.over.readAll(name)
	cost := len(text)
	for i, line := range strings.Split(text, "\n") {
		m := includeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := model.Pos{File: name, Line: i + 1, Col: 1}
		to := path.Join(path.Dir(name), m[1])
		switch {
		case in.state[to] == 1 && !guarded(in.over.readAll(to)):
			return &Refusal{Pos: at, What: fmt.Sprintf("%s includes itself and has no include guard", to)}
		case in.state[to] == 0 && in.over.readAll(to) != "":
			if r := in.follow(to); r != nil {
				return r
			}
		}
		if cost += in.cost[to]; cost > maxBytes {
			return &Refusal{Pos: at, What: fmt.Sprintf("with what it includes it has more than %d MiB", maxBytes>>20)}
		}
	}
	in.state[name], in.cost[name] = 2, cost
	if guarded(text) {
		in.cost[name] = min(cost, 1<<10)
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
