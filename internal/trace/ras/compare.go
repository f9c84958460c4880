package ras

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/internal/trace/model"
)

// Verdicts of a Section: how RAS's answer stands to what the files say.
const (
	Agrees    = "agrees"
	Differs   = "differs"
	KnowsMore = "knows more"
	Other     = "is of another job"
	Nothing   = "says nothing of it"
	None      = "has not answered"
)

// Section is a report's on RAS.
type Section struct {
	*Answer
	Error   string `json:"error,omitempty"`
	Verdict string `json:"verdict"`
	Why     string `json:"why"`
}

// Files is what a report that was made of a job's files says.
type Files struct {
	Accused []*model.Process // what is wrong is theirs
	Else    bool             // something is wrong that is no process's, as a slow link
	Times   bool             // it is about times, at which RAS does not look
}

// Unanswered is the section where RAS could not be asked.
func Unanswered(err error) *Section {
	return &Section{Error: err.Error(), Verdict: None, Why: err.Error()}
}

// Compare holds an answer to the files of a job.
func Compare(a *Answer, t *model.Trace, f Files) *Section {
	s := &Section{Answer: a}
	if len(a.Communicators) > 0 && !anyOf(t, a.Communicators) {
		s.Verdict, s.Why = Other, "it has none of the communicators that are in the files"
		return s
	}
	var both, more []string
	named := map[*model.Process]bool{}
	for _, finding := range a.Findings {
		for _, w := range finding.Who {
			p := process(t, finding.Communicator, w)
			switch {
			case p == nil && w.PID == 0: // a rank of which the files do not say whose it is
			case p == nil:
				more = append(more, w.String())
			case named[p]:
			case slices.Contains(f.Accused, p):
				named[p] = true
				both = append(both, p.Title())
			default:
				named[p] = true
				more = append(more, p.Title())
			}
		}
	}
	more = slices.Compact(more)
	var less []string
	for _, p := range f.Accused {
		if !named[p] {
			less = append(less, p.Title())
		}
	}
	s.judge(f, both, more, less)
	if a.Partly && len(a.Communicators) == 0 {
		s.Why += "; of which job it is, it does not say"
	}
	return s
}

// judge has those that both name, RAS alone, and the files alone.
func (s *Section) judge(f Files, both, more, less []string) {
	wrong := len(s.Findings) > 0
	switch {
	case len(both) > 0 && len(more) == 0:
		s.Verdict, s.Why = Agrees, "it names "+list(both)+" too"
	case len(both) > 0:
		s.Verdict, s.Why = KnowsMore, "it names "+list(both)+" too, and "+list(more)
	case wrong && len(less) > 0 && !f.Times && len(more) == 0:
		s.Verdict, s.Why = Differs, "something is wrong, but it names nobody whom the files know: not "+list(less)
	case wrong && len(less) > 0 && !f.Times:
		s.Verdict, s.Why = Differs, "it names "+list(more)+", and not "+list(less)
	case wrong && len(more) == 0:
		s.Verdict, s.Why = KnowsMore, "something is wrong, but it names nobody whom the files know"
	case wrong:
		s.Verdict, s.Why = KnowsMore, "it names "+list(more)+", of whom the files say nothing"
	case f.Times && (f.Else || len(less) > 0):
		s.Verdict, s.Why = Nothing, "nobody is missing, behind or failed; it does not look at times"
	case len(less) > 0:
		s.Verdict, s.Why = Differs, "nobody is missing, behind or failed, "+list(less)+" neither"
	case f.Else:
		s.Verdict, s.Why = Nothing, "nobody is missing, behind or failed; it looks at processes only"
	default:
		s.Verdict, s.Why = Agrees, "nobody is missing, behind or failed"
	}
}

func list(who []string) string {
	s := strings.Join(who[:min(len(who), mostNamed)], ", ")
	if more := len(who) - mostNamed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func anyOf(t *model.Trace, ids []uint64) bool {
	some := false
	for _, c := range t.Communicators {
		some = some || c.ID != 0
		if c.ID != 0 && slices.Contains(ids, c.ID) {
			return true
		}
	}
	return !some // the files do not say which communicators they are of
}

// process is whom RAS names, by the rank, or by a process number that one file has.
func process(t *model.Trace, communicator uint64, w Who) *model.Process {
	for _, c := range t.Communicators {
		if communicator == 0 || c.ID != communicator || w.Rank < 0 {
			continue
		}
		for _, m := range c.Comms {
			if m.Rank == w.Rank {
				return m.Process
			}
		}
	}
	var one *model.Process
	for _, p := range t.Processes {
		if w.PID > 0 && p.Header.PID == uint64(w.PID) {
			if one != nil {
				return nil
			}
			one = p
		}
	}
	return one
}

// Wrong reports whether RAS has not answered, or has somebody to name. It is false
// where nobody asked.
func (s *Section) Wrong() bool {
	return s != nil && (s.Answer == nil || s.Verdict != Other && len(s.Findings) > 0)
}

// Head says who was asked, and how the answer stands to the files.
func (s *Section) Head() string {
	who := "NCCL's RAS"
	if s.Answer != nil {
		who += fmt.Sprintf(" (%s, NCCL %s)", s.Address, s.Version)
	}
	return who + " " + s.Verdict + ": " + s.Why
}

// mostFindings bounds what is written for people.
const mostFindings = 16

// Lines are what RAS has found.
func (s *Section) Lines() []string {
	if s.Answer == nil {
		return nil
	}
	var lines []string
	for _, f := range s.Findings[:min(len(s.Findings), mostFindings)] {
		lines = append(lines, f.Text())
	}
	if more := len(s.Findings) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more, which --json has", more))
	}
	return lines
}

// Text writes the section for people.
func (s *Section) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(append([]string{s.Head()}, s.Lines()...), "\n  "))
	return err
}
