// Package rules reads gen/rules/*.rules: the decisions that the headers
// themselves cannot give, one directive a line. Every directive must match
// something, and knows the line that it stands on.
//
// The language is described at the top of net.rules.
package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// Open is the upper bound of a range of versions without one ("v9..").
const Open = 1 << 20

// Rule is one directive, or one word of a directive that lists words.
type Rule struct {
	Verb   string
	File   string // relative to the root of the repository
	Line   int
	Family string // net, collNet, profiler; empty for rules about structs
	Stem   string // versioned type without its version: "ncclNetProperties"
	Lo, Hi int    // versions, both included
	Slot   string // function of a table
	Param  string // parameter or field; "*" for none given
	Words  []string
	C      string // C text: the rest of the line
	Reason string // after " -- "
	used   bool
}

// Pos is file:line.
func (r *Rule) Pos() string { return fmt.Sprintf("%s:%d", r.File, r.Line) }

// Covers reports whether version v lies in the rule's range.
func (r *Rule) Covers(v int) bool { return r.Lo <= v && v <= r.Hi }

// Use marks the rule as having matched and returns it.
func (r *Rule) Use() *Rule { r.used = true; return r }

// Set is all rules, in order of file and line.
type Set struct {
	Rules []*Rule
}

// Verb returns the rules with that verb, in order.
func (s *Set) Verb(verb string) []*Rule {
	var rs []*Rule
	for _, r := range s.Rules {
		if r.Verb == verb {
			rs = append(rs, r)
		}
	}
	return rs
}

// Slot returns the first rule of a verb for a function of a table and marks it
// as used; nil when there is none.
func (s *Set) Slot(verb, family string, version int, slot string) *Rule {
	for _, r := range s.Verb(verb) {
		if r.Family == family && r.Slot == slot && r.Covers(version) {
			return r.Use()
		}
	}
	return nil
}

// Param returns the first rule of a verb for a parameter, given for its
// function or, with no function, for the family.
func (s *Set) Param(verb, family string, version int, slot, param string) *Rule {
	var general *Rule
	for _, r := range s.Verb(verb) {
		if r.Family != family || r.Param != param || !r.Covers(version) {
			continue
		}
		if r.Slot == slot {
			return r.Use()
		}
		if r.Slot == "" && general == nil {
			general = r
		}
	}
	if general != nil {
		general.Use()
	}
	return general
}

// Field returns the first rule of a verb for a field of a versioned struct.
func (s *Set) Field(verb, stem string, version int, field string) *Rule {
	for _, r := range s.Verb(verb) {
		if r.Stem == stem && r.Param == field && r.Covers(version) {
			return r.Use()
		}
	}
	return nil
}

// Unused returns an error for every rule that matched nothing.
func (s *Set) Unused() []error {
	var errs []error
	for _, r := range s.Rules {
		if !r.used && r.Verb != "drift" && r.Verb != "limit" { // those are about sources, which drop reads
			errs = append(errs, fmt.Errorf("%s: rule %q matches nothing: no header has %s", r.Pos(), r.Verb, r.target()))
		}
	}
	return errs
}

func (r *Rule) target() string {
	var what []string
	if r.Family != "" {
		what = append(what, r.Family)
	}
	if r.Stem != "" {
		what = append(what, r.Stem)
	}
	if r.Lo != 0 || r.Hi != Open {
		what = append(what, Versions(r.Lo, r.Hi))
	}
	switch {
	case r.Slot != "" && r.Param != "":
		what = append(what, r.Slot+"."+r.Param)
	case r.Slot != "":
		what = append(what, r.Slot)
	case r.Param != "":
		what = append(what, r.Param)
	}
	return strings.Join(append(what, r.Words...), " ")
}

// Versions spells a range as the rules do.
func Versions(lo, hi int) string {
	switch {
	case lo == 0 && hi == Open:
		return "all"
	case hi == Open:
		return fmt.Sprintf("v%d..", lo)
	case lo == hi:
		return fmt.Sprintf("v%d", lo)
	}
	return fmt.Sprintf("v%d..v%d", lo, hi)
}

func parseVersions(s string) (lo, hi int, err error) {
	if s == "all" {
		return 0, Open, nil
	}
	a, b, ranged := strings.Cut(s, "..")
	if lo, err = version(a); err != nil {
		return 0, 0, err
	}
	switch {
	case !ranged:
		return lo, lo, nil
	case b == "":
		return lo, Open, nil
	}
	if hi, err = version(b); err != nil {
		return 0, 0, err
	}
	if hi < lo {
		return 0, 0, fmt.Errorf("range of versions %q ends before it begins", s)
	}
	return lo, hi, nil
}

func version(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "v"))
	if err != nil || !strings.HasPrefix(s, "v") || n < 1 {
		return 0, fmt.Errorf("%q is not a version: write all, v4, v2..v4 or v9.. (and later)", s)
	}
	return n, nil
}
