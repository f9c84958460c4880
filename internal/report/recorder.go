package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Recorder is a Logger that keeps its lines, for tests of everything that
// logs: "WARN text", "INFO INIT text", "TRACE NET text".
type Recorder struct {
	lines struct {
		sync.Mutex
		all []string // protected
	}
}

func (r *Recorder) add(line string) {
	r.lines.Lock()
	defer r.lines.Unlock()
	r.lines.all = append(r.lines.all, line)
}

func (r *Recorder) Warn(format string, a ...any) { r.add("WARN " + fmt.Sprintf(format, a...)) }

func (r *Recorder) Info(sub Subsys, format string, a ...any) {
	r.add("INFO " + sub.String() + " " + fmt.Sprintf(format, a...))
}

func (r *Recorder) Trace(sub Subsys, format string, a ...any) {
	r.add("TRACE " + sub.String() + " " + fmt.Sprintf(format, a...))
}

// Lines returns a copy of what was said so far.
func (r *Recorder) Lines() []string {
	r.lines.Lock()
	defer r.lines.Unlock()
	return slices.Clone(r.lines.all)
}

// Count says how many lines begin with prefix and contain every part. A prefix that
// no line can have would make a test that cannot fail: it panics.
func (r *Recorder) Count(prefix string, parts ...string) int {
	if level, _, _ := strings.Cut(prefix, " "); level != "" && level != "WARN" && level != "INFO" && level != "TRACE" {
		panic(fmt.Sprintf("no line begins with %q: lines begin with their level", prefix))
	}
	n := 0
lines:
	for _, l := range r.Lines() {
		if !strings.HasPrefix(l, prefix) {
			continue
		}
		for _, p := range parts {
			if !strings.Contains(l, p) {
				continue lines
			}
		}
		n++
	}
	return n
}
