// Package env finds the variables that a process needs on a machine to use NCCL with weft as well as it goes: weft's own, and those
// by which rules of doctor say that they are mended.
package env

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
	"weft/internal/version"
)

// Schema is the version of the report's form.
const Schema = "weft.env/1"

// Report is what one machine needs.
type Report struct {
	Schema    string     `json:"schema" doc:"weft.env/1; a new number where a field goes or changes its meaning"`
	Host      string     `json:"host" doc:"the machine's own name"`
	Weft      string     `json:"weft" doc:"version of the weft that looked"`
	Variables []Variable `json:"variables" doc:"in the order in which they were found"`
	Missing   string     `json:"missing,omitempty" doc:"why no NCCL will find weft even so"`
	Left      []string   `json:"left,omitempty" doc:"what is wrong and no variable mends, by code"`
}

// Variable is one to be set.
type Variable struct {
	Name  string `json:"name" doc:"of the variable"`
	Value string `json:"value" doc:"an empty one is as if it were not set, to NCCL and to weft"`
	Why   string `json:"why" doc:"what is wrong without it"`
	Was   string `json:"was,omitempty" doc:"its value as it is, and where that is set; absent: nowhere"`
	Same  bool   `json:"same,omitempty" doc:"it is set so already"`
}

// mostRounds bounds the search: each round sets what mends one finding.
const mostRounds = 32

// search is one, on its way.
type search struct {
	m     *machine.Machine
	set   map[string]string
	order []string
	why   map[string]string
}

// New applies doctor's remedies, one after the other, until none is left that is a variable. The library is weft's, for where the
// loader does not find it; "" where no file of the machine is known to be it.
func New(m *machine.Machine, library string) (*Report, error) {
	s := &search{m: m, set: map[string]string{}, why: map[string]string{}}
	defer m.Override(nil)
	x, err := s.look()
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: Schema, Host: x.Sysctl("kernel/hostname"), Weft: version.String(), Variables: []Variable{}}
	was := map[string]machine.Setting{}
	for name := range x.Sets() {
		was[name] = x.Set(name)
	}
	s.put("NCCL_NET_PLUGIN", "weft", "the name by which NCCL from 2.11 on looks for libnccl-net-weft.so")
	if !x.Installed() && library != "" {
		s.put("LD_LIBRARY_PATH", x.First(path.Dir(library)), library+" is not where the loader looks")
	}
	if x, err = s.settle(); err != nil {
		return nil, err
	}
	if !x.Weft() {
		r.Missing = x.Network()
	}
	for _, name := range s.order {
		v := Variable{Name: name, Value: s.set[name], Why: s.why[name], Same: was[name].From != "" && was[name].Value == s.set[name]}
		if w := was[name]; w.From != "" && !v.Same {
			v.Was = fmt.Sprintf("%s (%s)", w.Value, w.From)
		}
		r.Variables = append(r.Variables, v)
	}
	for _, f := range x.Findings() {
		if f.Severity != doctor.Advice {
			r.Left = append(r.Left, fmt.Sprintf("%s %s: %s", f.Code, f.Severity, f.Title))
		}
	}
	r.Left = slices.Compact(r.Left)
	return r, nil
}

func (s *search) look() (*doctor.Exam, error) {
	s.m.Override(s.set)
	return doctor.Examine(s.m, 0)
}

func (s *search) put(name, value, why string) {
	if _, again := s.set[name]; !again {
		s.order = append(s.order, name)
		s.why[name] = why
	} else if s.why[name] != why {
		s.why[name] += "; " + why
	}
	s.set[name] = value
}

// settle looks until no finding has a variable that is not set so. A remedy that another takes back ends it.
func (s *search) settle() (*doctor.Exam, error) {
	tried := map[string]bool{}
	for range mostRounds {
		x, err := s.look()
		if err != nil {
			return nil, err
		}
		if !s.mend(x, tried) {
			return x, nil
		}
	}
	return s.look()
}

// mend sets the variables of the first finding that has some which were not tried; false: there is none.
func (s *search) mend(x *doctor.Exam, tried map[string]bool) bool {
	for _, f := range x.Findings() {
		changed := false
		for _, name := range slices.Sorted(maps.Keys(f.Set)) {
			value := f.Set[name]
			if tried[name+"="+value] {
				continue
			}
			tried[name+"="+value], changed = true, true
			s.put(name, value, fmt.Sprintf("%s: %s: %s", f.Code, f.Title, f.Evidence))
		}
		if changed {
			return true
		}
	}
	return false
}
