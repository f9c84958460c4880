package emit

import (
	"fmt"
	"strings"

	"weft/gen/plan"
)

// compat emits compat/zz_FAMILY_vN.c: what one version's structs look like,
// its adapters and its table.
func compat(p *plan.Plan, out tree) error {
	for _, t := range p.Tables {
		name := fmt.Sprintf("zz_%s_v%d.c", lower(t.Family), t.Version)
		var fns []string
		for _, s := range t.Slots {
			if s.How != plan.NullSlot {
				fns = append(fns, function(t, s))
			}
		}
		var copies []string
		for _, c := range t.Copies {
			copies = append(copies, copyFunction(c))
		}
		err := execute(out, "compat/"+name, tableTemplate, map[string]any{
			"Header": Header, "T": t, "Asserts": asserts(t), "Copies": copies, "Functions": fns, "Prefix": prefix(t), "Null": plan.NullSlot,
		})
		if err != nil {
			return err
		}
		out["compat/"+name] = lineNumbers(name, out["compat/"+name])
	}
	if err := calls(p, out); err != nil {
		return err
	}
	return values(p, out)
}

const tableTemplate = `// {{.Header}}
/* {{.T.Symbol}}: {{.T.Header}}, served by the core. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compat.h"
#include "zz_calls.h"
#include "{{.T.Header}}"

{{range .Asserts}}{{.}}
{{end}}
{{range .Copies}}{{.}}
{{end}}{{range .Functions}}{{.}}
{{end}}extern const {{.T.Record.Name}} {{.T.Symbol}};
const {{.T.Record.Name}} {{.T.Symbol}} = {
  .name = "{{.T.Name}}",
{{range .T.Slots}}{{if eq .How $.Null}}  .{{.Name}} = NULL, /* {{.Reason}} */
{{else}}  .{{.Name}} = {{$.Prefix}}{{.Name}},
{{end}}{{end}}};
`

func prefix(t *plan.Table) string { return fmt.Sprintf("%s_v%d_", lower(t.Family), t.Version) }

// body collects the statements of one adapter.
type body struct {
	strings.Builder
	slot *plan.Slot
	call string // its name in messages
	used map[string]bool
}

func (b *body) linef(format string, a ...any) { fmt.Fprintf(b, "  "+format+"\n", a...) }

// misuse refuses the call when a condition holds; got is the value to blame.
func (b *body) misuse(indent, cond, what, got string) {
	b.linef(`%sif (%s) return (ncclResult_t)weft_misuse("%s", "%s", (uint64_t)%s);`, indent, cond, b.call, what, got)
}

// required refuses pointers that are NULL.
func (b *body) required() {
	for _, q := range b.slot.Required {
		b.linef(`if (!%s) return (ncclResult_t)weft_null("%s", "%s");`, q, b.call, q)
	}
}

// counted refuses a count of arrays that is out of range. A table without the count has arrays of one.
func (b *body) counted() {
	v := b.slot.Core.Vector
	if v != nil && b.slot.Func.Param(v.Count) != nil {
		b.misuse("", fmt.Sprintf("%s < 1 || %s > %s", v.Count, v.Count, v.Max), fmt.Sprintf("%s is not between 1 and %s", v.Count, v.Max), v.Count)
	}
}

// function writes one adapter.
func function(t *plan.Table, s *plan.Slot) string {
	b := &body{slot: s, call: callName(t.Family, s.Name), used: map[string]bool{}}
	var params []string
	for _, q := range s.Func.Params {
		params = append(params, q.Type.Declare(q.Name))
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	head := fmt.Sprintf("static %s(%s)", s.Func.Result.Declare(prefix(t)+s.Name), strings.Join(params, ", "))
	if s.How == plan.Adapter {
		b.enter()
		b.required()
		args := []string{fmt.Sprint(t.Version)}
		for _, q := range s.Func.Params {
			args = append(args, q.Name)
		}
		b.linef("return (ncclResult_t)%s(%s);", s.Adapter, strings.Join(args, ", "))
		return head + " {\n" + b.String() + "}\n"
	}
	if s.Core.Served != plan.Fast {
		b.enter()
	}
	b.required()
	b.clear()
	for _, r := range s.Before {
		b.rule(r.Line, r.File, r.C)
	}
	b.counted()
	var args, last []string
	for _, a := range s.Args {
		args = append(args, b.argument(a))
		if a.Old != nil {
			b.used[a.Old.Name] = true
		}
		if a.Conv == plan.Lower {
			last = append(last, fmt.Sprintf("%s(%s, &%s_cur);", a.Copy.Name, a.Old.Name, a.Core.Name))
		}
	}
	for _, q := range s.Func.Params {
		if !b.used[q.Name] {
			b.linef("(void)%s;", q.Name)
		}
	}
	call := fmt.Sprintf("%s(%s)", s.Core.CFunc, strings.Join(args, ", "))
	if len(last) == 0 && len(s.After) == 0 {
		b.linef("return (ncclResult_t)%s;", call)
		return head + " {\n" + b.String() + "}\n"
	}
	declare := ""
	if s.Core.Served == plan.Fast {
		declare = "int "
	}
	b.linef("%src = %s;", declare, call)
	b.linef("if (rc) return (ncclResult_t)rc;")
	for _, r := range s.After {
		b.rule(r.Line, r.File, r.C)
	}
	for _, l := range last {
		b.linef("%s", l)
	}
	b.linef("return ncclSuccess;")
	return head + " {\n" + b.String() + "}\n"
}

// enter refuses the call when Go cannot run, or does nothing then: there is no room for it, or this is a forked child. A
// host's log function hears why.
func (b *body) enter() {
	logger := "0"
	for _, q := range b.slot.Func.Params {
		if q.Type.String() == "ncclDebugLogger_t" {
			logger = "(uintptr_t)" + q.Name
		}
	}
	b.linef("int rc = weft_enter(%s);", logger)
	if b.slot.Excused {
		b.linef("if (rc) return ncclSuccess;")
		return
	}
	b.linef("if (rc) return (ncclResult_t)rc;")
}

// rule inserts C from the rules, where compilers find its errors.
func (b *body) rule(line int, file, c string) {
	fmt.Fprintf(b, "#line %d \"%s\"\n", line, file)
	b.linef("%s", c)
	b.WriteString(lineMark)
}

// argument writes what one argument needs before the call, and gives the
// expression that is passed.
func (b *body) argument(a *plan.Arg) string {
	name := a.Core.Name
	switch a.Conv {
	case plan.Preset:
		return a.C
	case plan.Function:
		return fmt.Sprintf("%s(%s)", a.C, a.Old.Name)
	case plan.NonNegative:
		b.misuse("", a.Old.Name+" < 0", a.Old.Name+" is negative", a.Old.Name)
		return fmt.Sprintf("(%s)%s", a.Core.C, a.Old.Name)
	case plan.One:
		v := a.Old.Name
		if a.Inner == plan.NonNegative {
			b.misuse("", v+" < 0", v+" is negative", v)
			v = fmt.Sprintf("(%s)%s", a.Elem, v)
		}
		b.linef("%s = {%s};", a.Elem.Declare(name+"_one[1]"), v)
		return name + "_one"
	case plan.OneZero:
		b.linef("%s = {%s};", a.Elem.Declare(name+"_one[1]"), a.C)
		return name + "_one"
	case plan.List:
		b.list(a, func(old string) {
			if a.Inner == plan.NonNegative {
				b.misuse("  ", old+" < 0", a.Old.Name+" has a negative entry", old)
			}
			b.linef("  %s_cur[i] = (%s)%s;", name, a.Elem, old)
		})
		return name + "_cur"
	case plan.LiftList:
		b.list(a, func(old string) { b.linef("  %s(&%s_cur[i], &%s);", a.Copy.Name, name, old) })
		return name + "_cur"
	case plan.Lift:
		selector := ""
		if a.Copy.Selector != nil {
			selector = ", " + a.Copy.On
		}
		if b.slot.Requires(a.Old.Name) {
			b.linef("%s %s_cur;", a.Copy.CurName, name)
			b.linef("%s(&%s_cur, %s%s);", a.Copy.Name, name, a.Old.Name, selector)
			return "&" + name + "_cur"
		}
		b.linef("%s %s_cur, *%s_ptr = NULL;", a.Copy.CurName, name, name)
		b.linef("if (%s) {", a.Old.Name)
		b.linef("  %s(&%s_cur, %s%s);", a.Copy.Name, name, a.Old.Name, selector)
		b.linef("  %s_ptr = &%s_cur;", name, name)
		b.linef("}")
		return name + "_ptr"
	case plan.Lower:
		b.linef("%s %s_cur;", a.Copy.CurName, name)
		b.linef("memset(&%s_cur, 0, sizeof %s_cur);", name, name)
		return "&" + name + "_cur"
	}
	return b.pass(a)
}

// clear has pointers to structs that the call gives be NULL whatever answers it, C of the rules too.
func (b *body) clear() {
	for _, a := range b.slot.Args {
		if a.Old == nil || a.Core.Role != plan.StructIn && a.Core.Role != plan.StructOut || !strings.HasSuffix(a.Core.C, "**") {
			continue
		}
		if b.slot.Requires(a.Old.Name) {
			b.linef("*%s = NULL;", a.Old.Name)
		} else {
			b.linef("if (%s) *%s = NULL;", a.Old.Name, a.Old.Name)
		}
	}
}

// pass casts where C needs it.
func (b *body) pass(a *plan.Arg) string {
	n := a.Old.Name
	switch a.Core.Role {
	case plan.Opaque, plan.OpaqueOut, plan.Text:
		return fmt.Sprintf("(%s)%s", a.Core.C, n)
	case plan.StructIn, plan.StructOut:
		if a.Old.Type.String() != a.Core.C {
			return fmt.Sprintf("(%s)%s", a.Core.C, n)
		}
	}
	return n
}

// list writes the loop that converts an array.
func (b *body) list(a *plan.Arg, each func(old string)) {
	v := b.slot.Core.Vector
	elem := ""
	if a.Copy != nil {
		elem = a.Copy.CurName + fmt.Sprintf(" %s_cur[%s]", a.Core.Name, v.Max)
	} else {
		elem = a.Elem.Declare(fmt.Sprintf("%s_cur[%s]", a.Core.Name, v.Max))
	}
	b.linef("%s;", elem)
	b.linef("for (int i = 0; i < %s; i++) {", v.Count)
	each(a.Old.Name + "[i]")
	b.linef("}")
}

// lineMark stands where the numbering of the generated file is taken up again.
const lineMark = "#line here\n"

// lineNumbers replaces the marks by the number of the line after them.
func lineNumbers(file string, text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		if l+"\n" == lineMark {
			lines[i] = fmt.Sprintf("#line %d \"%s\"", i+2, file)
		}
	}
	return []byte(strings.Join(lines, "\n"))
}
