package emit

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"weft/gen/model"
	"weft/gen/plan"
)

// asserts writes what the parser believes about every struct that a table
// uses, so that the C compiler is a second witness of each layout.
func asserts(t *plan.Table) []string {
	w := &witness{seen: map[*model.Record]bool{}}
	for _, f := range t.Record.Fields {
		if f.Type.IsFuncPtr() {
			for _, q := range f.Type.Elem.Func.Params {
				w.reach(q.Type)
			}
		}
	}
	w.record(t.Record.Name, t.Record)
	return w.lines
}

type witness struct {
	seen  map[*model.Record]bool
	lines []string
}

// reach asserts on the structs that a type leads to.
func (w *witness) reach(t *model.Type) {
	for t.Elem != nil {
		t = t.Elem
	}
	if r := t.Record; r != nil && r.Name != "" && !r.Incomplete && !w.seen[r] {
		w.seen[r] = true
		for _, f := range r.Fields {
			w.reach(f.Type)
		}
		w.record(r.Name, r)
	}
}

func (w *witness) assertf(format string, a ...any) {
	c := fmt.Sprintf(format, a...)
	w.lines = append(w.lines, fmt.Sprintf("_Static_assert(%s, %q);", c, "layout differs from what the generator read"))
}

func (w *witness) record(name string, r *model.Record) {
	w.assertf("sizeof(%s) == %d", name, r.Size)
	w.assertf("_Alignof(%s) == %d", name, r.Align)
	w.fields(name, "", 0, r)
}

// fields asserts on members, also on those of members declared in place.
func (w *witness) fields(name, at string, base int64, r *model.Record) {
	for _, f := range r.Fields {
		inPlace := f.Type.Record != nil && f.Type.Name == "" && f.Type.Kind != model.Pointer && f.Type.Kind != model.Array
		if f.Name != "" {
			w.assertf("offsetof(%s, %s) == %d", name, at+f.Name, base+f.Offset)
			if inPlace {
				w.assertf("sizeof(((%s*)0)->%s) == %d", name, at+f.Name, f.Type.Size)
			} else {
				w.assertf("__builtin_types_compatible_p(__typeof__(((%s*)0)->%s), %s)", name, at+f.Name, f.Type)
			}
		}
		if inPlace {
			in := at
			if f.Name != "" {
				in += f.Name + "."
			}
			w.fields(name, in, base+f.Offset, f.Type.Record)
		}
	}
}

// calls emits compat/zz_calls.h: the core as hand-written adapters call it.
func calls(p *plan.Plan, out tree) error {
	type inline struct{ Name, Params, Core, Args string }
	var ls []inline
	for _, c := range p.Calls {
		var ps []string
		for _, q := range c.Params {
			ps = append(ps, q.C+" "+q.Name)
		}
		ls = append(ls, inline{c.Name, strings.Join(ps, ", "), c.Core.CFunc, strings.Join(c.Args, ", ")})
	}
	return execute(out, "compat/zz_calls.h", `// {{.Header}}
/* The core with just the parameters that hand-written adapters know; what newer headers add gets its default. */
#ifndef WEFT_ZZ_CALLS_H
#define WEFT_ZZ_CALLS_H

#include "zz_slow.h"
{{range .Calls}}
static inline int {{.Name}}({{.Params}}) {
  return {{.Core}}({{.Args}});
}
{{end}}
#endif
`, map[string]any{"Header": Header, "Calls": ls})
}

// values emits compat/zz_values.c: the enumerators and limits that Go takes
// from the headers, witnessed by the C compiler.
func values(p *plan.Plan, out tree) error {
	headers := map[string]bool{}
	w := new(witness)
	for _, e := range p.Unit.Enums {
		headers[e.Pos.File] = true
		if e.Name != "" {
			w.assertf("sizeof(%s) == %d", e.Name, e.Size)
		}
		for _, v := range e.Values {
			w.assertf("%s == %d", v.Name, v.Value)
		}
	}
	for _, m := range p.Unit.Macros {
		if m.Kind == model.MacroInt {
			headers[m.Pos.File] = true
			w.assertf("%s == %d", m.Name, m.Int)
		}
	}
	var include []string
	for h := range headers {
		include = append(include, path.Clean(h))
	}
	sort.Strings(include)
	return execute(out, "compat/zz_values.c", `// {{.Header}}
/* The values that Go takes from the headers. */
{{range .Include}}#include "{{.}}"
{{end}}
{{range .Asserts}}{{.}}
{{end}}`, map[string]any{"Header": Header, "Include": include, "Asserts": w.lines})
}
