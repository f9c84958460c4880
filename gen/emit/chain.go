package emit

import (
	"fmt"
	"slices"
	"strings"

	"weft/gen/model"
	"weft/gen/plan"
)

// chainType is how C names a family's chained tables.
func chainType(f model.Family) string { return "weft_chain_" + lower(f) }

// chains emits plugin/zz_chain.h, the tables of other libraries in the newest
// version's terms, and compat/zz_chain_FAMILY_vN.c, which call them.
func chains(p *plan.Plan, out tree) error {
	type family struct {
		Type   string
		Calls  []string // members of the struct
		Tables []*plan.Chained
	}
	var families []*family
	for _, c := range slices.Backward(p.Chained) { // the newest first
		f := &family{Type: chainType(c.Family)}
		if n := len(families); n > 0 && families[n-1].Type == f.Type {
			f = families[n-1]
		} else {
			families = append(families, f)
			for _, call := range c.Calls {
				f.Calls = append(f.Calls, fmt.Sprintf("int (*%s)(%s)", call.Name, chainParams(call)))
			}
		}
		f.Tables = append(f.Tables, c)
		var fns []string
		for _, call := range c.Calls {
			fns = append(fns, chainFunction(c, call))
		}
		var copies []string
		for _, copy := range c.Copies {
			copies = append(copies, copyFunction(copy))
		}
		name := fmt.Sprintf("zz_chain_%s_v%d.c", lower(c.Family), c.Version)
		if err := execute(out, "compat/"+name, chainTemplate, map[string]any{"Header": Header, "T": c, "Type": f.Type, "Copies": copies, "Functions": fns}); err != nil {
			return err
		}
		out["compat/"+name] = lineNumbers(name, out["compat/"+name])
	}
	if families == nil {
		return nil
	}
	return execute(out, "plugin/zz_chain.h", chainHeaderTemplate, map[string]any{"Header": Header, "Families": families})
}

const chainTemplate = `// {{.Header}}
/* {{.T.Symbol}} of another library ({{.T.Header}}), called by the core. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compat.h"
#include "zz_chain.h"
#include "{{.T.Header}}"

{{range .Copies}}{{.}}
{{end}}{{range .Functions}}{{.}}
{{end}}const struct {{.Type}} {{.Type}}_v{{.T.Version}} = {
  .version = {{.T.Version}},
  .symbol = "{{.T.Symbol}}",
  .kinds = 0{{range .T.Kinds}} | (uint64_t){{.}}{{end}},
{{range .T.Calls}}  .{{.Name}} = {{.Name}},
{{end}}};
`

const chainHeaderTemplate = `// {{.Header}}
/* Tables of other libraries, called in the terms of the newest version: table is what the library exports as symbol,
 * kinds are the types of events for which its structs have a place. */
#ifndef WEFT_ZZ_CHAIN_H
#define WEFT_ZZ_CHAIN_H

#include "zz_slow.h"
{{range $f := .Families}}
struct {{.Type}} {
  int version;
  const char* symbol;
  uint64_t kinds;
{{range .Calls}}  {{.}};
{{end}}};

{{range .Tables}}extern const struct {{$f.Type}} {{$f.Type}}_v{{.Version}};
{{end}}
/* All of them, the newest first. */
#define {{.Type}}_all \
  {{"{"}}{{range $i, $t := .Tables}}{{if $i}}, {{end}}&{{$f.Type}}_v{{.Version}}{{end}}{{"}"}}
{{end}}
#endif
`

// chainParams are a function's parameters, behind the table.
func chainParams(call *plan.ChainedCall) string {
	params := []string{"const void* table"}
	for _, q := range call.Params {
		params = append(params, q.C+" "+q.Name)
	}
	return strings.Join(params, ", ")
}

func chainFunction(c *plan.Chained, call *plan.ChainedCall) string {
	b := &body{}
	used := map[string]bool{}
	var args []string
	for _, a := range call.Args {
		if a.Core == nil {
			args = append(args, "0")
			continue
		}
		used[a.Core.Name] = true
		args = append(args, b.chained(a, slices.Contains(call.Required, a.Old.Name)))
	}
	for _, q := range call.Params {
		if !used[q.Name] {
			b.linef("(void)%s;", q.Name)
		}
	}
	for _, r := range call.Before {
		b.rule(r.Line, r.File, r.C)
	}
	b.linef("return (int)((const %s*)table)->%s(%s);", c.Record.Name, call.Name, strings.Join(args, ", "))
	return fmt.Sprintf("static int %s(%s) {\n%s}\n", call.Name, chainParams(call), b.String())
}

// chained writes what one argument of a chained call needs, and gives the
// expression that is passed.
func (b *body) chained(a *plan.Arg, required bool) string {
	name := a.Core.Name
	switch {
	case a.Copy != nil:
		selector := ""
		if a.Copy.Selector != nil {
			selector = ", " + a.Copy.On
		}
		b.linef("%s %s_old;", a.Copy.Old, name)
		if required {
			b.linef("%s(&%s_old, %s%s);", a.Copy.Name, name, name, selector)
			return "&" + name + "_old"
		}
		b.linef("if (%s) %s(&%s_old, %s%s);", name, a.Copy.Name, name, name, selector)
		return fmt.Sprintf("%s ? &%s_old : NULL", name, name)
	case a.Core.Role == plan.Value:
		return name
	}
	return fmt.Sprintf("(%s)%s", a.Old.Type, name)
}
