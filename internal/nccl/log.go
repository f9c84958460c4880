package nccl

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Line is one of NCCL's log.
type Line struct {
	Level string // INFO, WARN, ...
	Text  string
}

// Ours says whether weft wrote the line.
func (l Line) Ours() bool { return strings.HasPrefix(l.Text, "NET/weft") }

var lineOf = regexp.MustCompile(`\bNCCL (INFO|WARN|TRACE|ATTN|ABORT|ERROR) (.*)`)

// Log is what NCCL and weft wrote in one rank: to a file, or among what the rank said.
func (r *Run) Log(rank int) (lines []Line, err error) {
	var text []byte
	if r.Release.LogsToFile() {
		text, err = os.ReadFile(r.logFile(rank))
	} else {
		text = []byte(strings.Join(r.Ranks[rank].all(), "\n"))
	}
	for l := range strings.Lines(string(text)) {
		if m := lineOf.FindStringSubmatch(l); m != nil {
			lines = append(lines, Line{m[1], strings.TrimSpace(m[2])})
		}
	}
	return lines, err
}

//go:embed peace.txt
var peace string

// peaceful are the lines that may stand in the log of a run in which nothing is wrong.
var peaceful = func() (list []*regexp.Regexp) {
	for l := range strings.Lines(peace) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			list = append(list, regexp.MustCompile("^"+l+"$"))
		}
	}
	return list
}()

// Unwanted are the lines of all ranks that a run in which nothing is wrong must not have: warnings, of whomever, and lines
// of weft that nobody has listed in peace.txt.
func (r *Run) Unwanted() (lines []string, err error) {
	for _, k := range r.Ranks {
		log, err := r.Log(k.Number)
		if err != nil {
			return nil, err
		}
		for _, l := range log {
			if (l.Ours() || l.Level != "INFO") && !wanted(l) {
				lines = append(lines, fmt.Sprintf("rank %d: %s %s", k.Number, l.Level, l.Text))
			}
		}
	}
	return lines, nil
}

func wanted(l Line) bool {
	for _, p := range peaceful {
		if p.MatchString(l.Level + " " + l.Text) {
			return true
		}
	}
	return false
}
