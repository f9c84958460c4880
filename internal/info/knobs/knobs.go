// Package knobs says which variables of NCCL's network and of weft are set on a machine, where, and what weft makes of each.
package knobs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"weft/internal/doctor"
	"weft/internal/doctor/machine"
	"weft/internal/knob"
)

// Schema is the version of the report's form.
const Schema = "weft.knobs/1"

// Report is what is set on one machine.
type Report struct {
	Schema string `json:"schema" doc:"weft.knobs/1; a new number where a field goes or changes its meaning"`
	Host   string `json:"host" doc:"the machine's own name"`
	Knobs  []Knob `json:"knobs" doc:"weft's in the order of docs/knobs.md, then those that others read, by name"`
}

// State is what weft makes of a variable.
type State string

// The states.
const (
	Unset   State = "unset"           // its default is used
	Taken   State = "taken"           // weft goes by it
	Inert   State = "changes nothing" // it is legal, and weft has no use for it
	Refused State = "refused"         // it is not legal: the default is used
	Foreign State = "not weft's"      // others read it, or may
	Unknown State = "unknown"         // nobody is known to read it
)

// Knob is a variable.
type Knob struct {
	Name    string `json:"name" doc:"of the variable"`
	Value   string `json:"value,omitempty" doc:"as it is set; secrets are not shown"`
	From    string `json:"from,omitempty" doc:"where it is set: the environment, or a file and a line of it"`
	State   State  `json:"state" doc:"taken, changes nothing, refused, not weft's, unknown, unset"`
	Default string `json:"default,omitempty" doc:"of one of weft's"`
	Legal   string `json:"legal,omitempty" doc:"which values are"`
	Note    string `json:"note,omitempty" doc:"why it is refused or changes nothing, who reads it, which name is nearest"`
	Hidden  string `json:"hidden,omitempty" doc:"where it is set too, in vain"`
}

// New tells of what is set, and with all also of weft's knobs that are not.
func New(x *doctor.Exam, all bool) *Report {
	r := &Report{Schema: Schema, Host: x.Sysctl("kernel/hostname"), Knobs: []Knob{}}
	for i, s := range knob.All() {
		if k := own(x, knob.ID(i), &s); k.State != Unset || all {
			r.Knobs = append(r.Knobs, k)
		}
	}
	sets := x.Sets()
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if _, ours := knob.Find(name); !ours && concerns(name) && sets[name] != "" {
			r.Knobs = append(r.Knobs, foreign(x, name))
		}
	}
	return r
}

func concerns(name string) bool {
	return slices.ContainsFunc([]string{"NCCL_", "RCCL_", "WEFT_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// own is one of weft's.
func own(x *doctor.Exam, id knob.ID, s *knob.Spec) Knob {
	name := s.Name
	if x.Set(name).Value == "" && s.Also != "" && x.Set(s.Also).Value != "" {
		name = s.Also
	}
	k := Knob{Name: name, State: Unset, Default: s.DefaultText(), Legal: s.Legal()}
	set := x.Set(name)
	if set.Value == "" {
		if set.From != "" {
			k.Note = "set to nothing (" + set.From + "), which counts as unset"
		}
		return k
	}
	k.Value, k.From, k.Hidden = knob.Printable(set.Value), set.From, hidden(x, name, set)
	switch {
	case x.Knobs().Origin(id) == knob.Rejected:
		k.State, k.Note = Refused, problem(x, name)
	case s.Inert != "":
		k.State, k.Note = Inert, s.Inert
	default:
		k.State, k.Note = Taken, problem(x, name)
	}
	return k
}

// foreign is one that weft does not read.
func foreign(x *doctor.Exam, name string) Knob {
	set := x.Set(name)
	k := Knob{Name: name, Value: knob.Printable(set.Value), From: set.From, State: Foreign, Hidden: hidden(x, name, set)}
	if knob.Secret(name) {
		k.Value = "(not shown)"
	}
	reader, meaning, known := knob.Foreign(name)
	switch p := problem(x, name); {
	case known && p != "":
		k.Note = p
	case known:
		k.Note = strings.ToLower(reader[:1]) + reader[1:] + "; default, meaning: " + strings.ReplaceAll(meaning, "`", "")
	case knob.Elsewhere(name):
		k.Note = "read by weft's command and its tests"
	case p != "":
		k.State, k.Note = Unknown, p
	default:
		k.Note = "it is none of the network's; NCCL may read it"
	}
	return k
}

// problem is what is wrong with a variable, without its name where that can be; "": nothing.
func problem(x *doctor.Exam, name string) string {
	var all []string
	for _, p := range x.Problems() {
		rest, of := strings.CutPrefix(p, name)
		switch {
		case !of || rest == "":
		case rest[0] == ' ', rest[0] == ':':
			all = append(all, strings.TrimSpace(strings.TrimPrefix(rest, ":")))
		case rest[0] == '=':
			if _, why, cut := strings.Cut(rest, ": "); cut {
				p = why
			}
			all = append(all, p)
		}
	}
	return strings.Join(all, "; ")
}

// hidden are the lines of NCCL's files that set it, too, and do not count.
func hidden(x *doctor.Exam, name string, set machine.Setting) string {
	var all []string
	for _, l := range x.ConfLines() {
		if at := fmt.Sprintf("%s, line %d", l.File, l.Number); l.Name == name && at != set.From {
			all = append(all, at)
		}
	}
	return strings.Join(all, "; ")
}

// Text writes a paragraph for each.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, k := range r.Knobs {
		k.print(&b)
	}
	if len(r.Knobs) == 0 {
		b.WriteString("No variable of NCCL's network or of weft is set: the defaults are used (weft info knobs --all lists them).\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (k *Knob) print(b *strings.Builder) {
	if k.State == Unset {
		fmt.Fprintf(b, "%s is not set; default %s; legal: %s\n", k.Name, k.Default, k.Legal)
	} else {
		fmt.Fprintf(b, "%s=%s\n  %-9s%s\n", k.Name, k.Value, "from", k.From)
		if k.Default != "" {
			fmt.Fprintf(b, "  %-9s%s\n", "default", k.Default)
		}
		fmt.Fprintf(b, "  %-9s%s", "state", k.says())
	}
	if k.Note != "" && k.State == Unset {
		fmt.Fprintf(b, "  %s\n", k.Note)
	}
	if k.Hidden != "" {
		fmt.Fprintf(b, "  %-9s%s, in vain\n", "also in", k.Hidden)
	}
}

// says is what weft makes of it, a line.
func (k *Knob) says() string {
	switch {
	case k.Note == "":
		return string(k.State) + "\n"
	case k.State == Taken:
		return fmt.Sprintf("%s, but: %s\n", k.State, k.Note)
	}
	return fmt.Sprintf("%s: %s\n", k.State, k.Note)
}
