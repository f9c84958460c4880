package rules

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"weft/gen/model"
)

// grammar says what follows each verb:
//
//	family    one of model.Families          versions  all, v4, v2..v4, v9..
//	slot      a function of the table        param     slot.param, or param alone
//	stem      a struct without its version   field     a field's path
//	word      any one word                   ...       one rule for each further word
//	words     the rest, kept together        c         the rest of the line, C
//	=c        "=" and the rest of the line, C
//
// A "!" at the end: the reason, after " -- ", must be given.
var grammar = map[string]string{
	"name":     "word",
	"from":     "family word",
	"witness":  "family word",
	"fast":     "family slot word",
	"slow":     "family slot...",
	"native":   "family slot words",
	"null":     "family versions slot !",
	"excused":  "family slot... !",
	"adapter":  "family versions slot word !",
	"call":     "family slot words",
	"chain":    "family slot words",
	"chained":  "family versions slot c",
	"extra":    "family slot word word =c",
	"rename":   "family versions param word",
	"retitle":  "family versions slot word",
	"default":  "family versions param =c",
	"drop":     "family versions param !",
	"opaque":   "family param...",
	"memory":   "family param...",
	"nullable": "family param... !",
	"in":       "family param...",
	"out":      "family param...",
	"vector":   "family slot words",
	"before":   "family versions slot c",
	"after":    "family versions slot c",
	"counted":  "stem field word",
	"select":   "stem field word word",
	"relabel":  "stem versions field word",
	"lose":     "stem versions field... !",
	"unset":    "stem versions field... !",
	"convert":  "subject",
	"revert":   "stem versions field word",
	"supply":   "stem versions field word",
	"narrow":   "stem versions field... !",
	"declare":  "c",
	"drift":    "stem versions field word word !",
	"limit":    "word word !",
}

// LoadFS reads all *.rules files of a folder; where is its name in messages.
func LoadFS(fsys fs.FS, where string) (*Set, error) {
	names, err := fs.Glob(fsys, "*.rules")
	if err != nil {
		return nil, fmt.Errorf("rules: list %s: %w", where, err)
	}
	sort.Strings(names)
	set := new(Set)
	var errs []error
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("rules: read %s: %w", path.Join(where, name), err)
		}
		rs, err := Parse(path.Join(where, name), text)
		if err != nil {
			errs = append(errs, err)
		}
		set.Rules = append(set.Rules, rs...)
	}
	return set, errors.Join(errs...)
}

// Parse reads one file of rules.
func Parse(file string, text []byte) ([]*Rule, error) {
	var rs []*Rule
	var errs []error
	in := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; in.Scan(); line++ {
		s := strings.TrimSpace(in.Text())
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		got, err := parseLine(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, line, err))
			continue
		}
		for _, r := range got {
			r.File, r.Line = file, line
			rs = append(rs, r)
		}
	}
	if err := in.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", file, err))
	}
	return rs, errors.Join(errs...)
}

// parseLine reads one directive. A directive that ends in a list gives one
// rule for each word of it, so that each word must match on its own.
func parseLine(s string) ([]*Rule, error) {
	s, reason, _ := strings.Cut(s, " -- ")
	verb, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	spec, known := grammar[verb]
	if !known {
		return nil, fmt.Errorf("unknown directive %q; there are %s", verb, strings.Join(verbs(), ", "))
	}
	r := Rule{Verb: verb, Hi: Open, Reason: strings.TrimSpace(reason)}
	words := strings.Fields(rest)
	if verb == "convert" {
		spec = "stem versions field word"
		if len(words) > 0 && slices.Contains(model.Families, model.Family(words[0])) {
			spec = "family versions param word"
		}
	}
	usage := func(why string) error { return fmt.Errorf("%s: %s; the form is: %s %s", verb, why, verb, spec) }
	for _, want := range strings.Fields(spec) {
		switch want {
		case "!":
			if r.Reason == "" {
				return nil, usage("no reason given after \" -- \"")
			}
			continue
		case "c", "=c":
			c := strings.TrimSpace(cutWords(rest, len(strings.Fields(rest))-len(words)))
			if want == "=c" {
				var eq bool
				if c, eq = strings.CutPrefix(c, "="); !eq {
					return nil, usage("\"=\" expected")
				}
			}
			if r.C = strings.TrimSpace(c); r.C == "" {
				return nil, usage("C text expected")
			}
			return []*Rule{&r}, nil
		case "words":
			if len(words) == 0 {
				return nil, usage("words expected")
			}
			r.Words = append(r.Words, words...)
			return []*Rule{&r}, nil
		}
		if len(words) == 0 {
			return nil, usage(strings.TrimSuffix(want, "...") + " missing")
		}
		if kind, list := strings.CutSuffix(want, "..."); list {
			if strings.HasSuffix(spec, "!") && r.Reason == "" {
				return nil, usage("no reason given after \" -- \"")
			}
			var rs []*Rule
			for _, w := range words {
				each := r
				if err := each.put(kind, w); err != nil {
					return nil, usage(err.Error())
				}
				rs = append(rs, &each)
			}
			return rs, nil
		}
		if err := r.put(want, words[0]); err != nil {
			return nil, usage(err.Error())
		}
		words = words[1:]
	}
	if len(words) > 0 {
		return nil, usage(fmt.Sprintf("%q is too much", strings.Join(words, " ")))
	}
	return []*Rule{&r}, nil
}

func (r *Rule) put(kind, w string) (err error) {
	switch kind {
	case "family":
		if !slices.Contains(model.Families, model.Family(w)) {
			return fmt.Errorf("%q is not a family: there are %v", w, model.Families)
		}
		r.Family = w
	case "versions":
		r.Lo, r.Hi, err = parseVersions(w)
	case "slot":
		r.Slot = w
	case "param":
		if slot, param, both := strings.Cut(w, "."); both {
			r.Slot, r.Param = slot, param
		} else {
			r.Param = w
		}
	case "stem":
		r.Stem = w
	case "field":
		r.Param = w
	case "word":
		r.Words = append(r.Words, w)
	}
	return err
}

// cutWords drops the first n words of s and keeps the spacing of the rest.
func cutWords(s string, n int) string {
	for range n {
		s = strings.TrimLeft(s, " \t")
		if i := strings.IndexAny(s, " \t"); i >= 0 {
			s = s[i:]
		} else {
			return ""
		}
	}
	return s
}

func verbs() []string {
	var vs []string
	for v := range grammar {
		vs = append(vs, v)
	}
	sort.Strings(vs)
	return vs
}
