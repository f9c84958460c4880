package source

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"

	"weft/gen/model"
	"weft/gen/parse"
)

// prelude is what NCCL's own headers take for granted.
const prelude = "#include <stdbool.h>\n#include <stdint.h>\n#include <sys/types.h>\n"

// Parse reads the source. A header that merely defines something useful, but
// cannot be read, is left out: what it defined is then taken from ours. One
// architecture is enough: what is imported is parsed again on all. A single header
// may define no table.
func (s *Headers) Parse(ours *model.Unit) (*model.Unit, error) {
	for {
		plan := s.order(ours)
		u, err := parse.Headers(parse.Options{
			FS: tree{s, files(plan.inferred)}, System: system{s, files(plan.made)}, Headers: plan.headers, Arch: parse.Arches[0],
			Prelude: prelude, Library: true,
		})
		if err == nil {
			s.plan = plan
			return u, s.promised(u)
		}
		if !s.ban(err) {
			if open := s.unclosed(); open != nil {
				err = open
			}
			return nil, fmt.Errorf("read the source:\n%w", err)
		}
	}
}

// Notes tells what of the source was not read, and what was taken for what it
// lacks; after Parse.
func (s *Headers) Notes() []string {
	var list []string
	for _, p := range s.paths {
		if why := s.banned[p]; why != nil {
			list = append(list, fmt.Sprintf("%s: cannot be read and was left out; what it defines is taken from headers/nccl: %v", p, why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.absent)) {
		if s.plan.reads(s.absent[name]) {
			list = append(list, fmt.Sprintf("%s: not in the source, and taken to be empty; %s includes it", name, s.absent[name]))
		}
	}
	return append(list, s.plan.notes()...)
}

// Took lists the names that the source uses and does not define, and that were
// taken from our headers; after Parse.
func (s *Headers) Took() []string {
	return slices.Concat(slices.Collect(maps.Values(s.plan.took))...)
}

// promised requires a table of every header that is named for one.
func (s *Headers) promised(u *model.Unit) error {
	for _, p := range s.named {
		if !slices.ContainsFunc(u.Tables, func(t *model.Table) bool { return s.find(t.Header) == p }) {
			return fmt.Errorf("read the source:\n%s:1:1: defines no table, neither %s nor another: is it truncated?", p,
				tableIn(path.Base(p)))
		}
	}
	return nil
}

// tableIn names the type that a header of that name should define.
func tableIn(header string) string {
	version, err := strconv.Atoi(model.TableHeader.FindStringSubmatch(header)[2])
	i := slices.IndexFunc(model.Families, func(f model.Family) bool { return path.Base(f.Header(version)) == header })
	if err != nil || i < 0 {
		return "of version " + header
	}
	return model.Families[i].TypeName(version)
}

// unclosed finds the brace or parenthesis at which a header stops making
// sense: the parser may see that only in the header behind it.
func (s *Headers) unclosed() error {
	closes := map[rune]rune{')': '(', '}': '{'}
	for _, p := range s.tables {
		var open []rune
		var lines []int
		line := 1
		for _, c := range quoted.ReplaceAllString(s.texts[p], "") {
			switch c {
			case '\n':
				line++
			case '(', '{':
				open, lines = append(open, c), append(lines, line)
			case ')', '}':
				if n := len(open); n > 0 && open[n-1] == closes[c] {
					open, lines = open[:n-1], lines[:n-1]
				} else if n == 0 {
					return fmt.Errorf("%s:%d: %q closes nothing", p, line, string(c))
				}
			}
		}
		if n := len(open); n > 0 {
			return fmt.Errorf("%s:%d: %q is never closed: is the header truncated?", p, lines[n-1], string(open[n-1]))
		}
	}
	return nil
}

var quoted = regexp.MustCompile(`"[^"\n]*"|'[^'\n]*'`)

// ban empties the header at fault, unless it defines a table to import. It
// reports whether that changed anything.
func (s *Headers) ban(err error) bool {
	var refused parse.Refusals
	if !errors.As(err, &refused) || len(refused) == 0 {
		return false
	}
	fault := s.find(refused[0].Pos.File)
	if fault == "" || s.banned[fault] != nil || slices.Contains(s.tables, fault) {
		return false
	}
	s.banned[fault] = refused[0]
	return true
}
