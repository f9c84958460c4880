package emit

import (
	"sort"
	"strings"

	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// slowHeader emits plugin/zz_slow.h: the prototypes of the core, the names
// of the newest types, and what the plugin offers the hand-written adapters.
func slowHeader(p *plan.Plan, out tree) error {
	headers := map[string]bool{}
	for _, c := range p.Cur {
		headers[c.Header] = true
	}
	for _, fam := range model.Families {
		if t := p.Unit.Newest(fam); t != nil {
			headers[t.Header] = true
		}
	}
	var include []string
	for h := range headers {
		include = append(include, h)
	}
	sort.Strings(include)
	curs := append([]*plan.Cur(nil), p.Cur...)
	sort.Slice(curs, func(i, j int) bool { return curs[i].Alias < curs[j].Alias })
	type prototype struct{ C string }
	var protos []prototype
	for _, c := range p.Cores {
		if inGo(c) || c.Served == plan.Native {
			protos = append(protos, prototype{prototypeOf(c)})
		}
	}
	return execute(out, "plugin/zz_slow.h", slowTemplate, map[string]any{
		"Header": Header, "Include": include, "Cur": curs, "Protos": protos, "Declared": p.Declared,
	})
}

const slowTemplate = `// {{.Header}}
/* The core as C sees it, in Go or beside it. Opaque values are uintptr_t: Go must not take them for pointers. */
#ifndef WEFT_ZZ_SLOW_H
#define WEFT_ZZ_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

{{range .Include}}#include "{{.}}"
{{end}}
/* The newest version of each type; hand-written code names no version. */
{{range .Cur}}typedef {{.Name}} {{.Alias}};
{{end}}
{{range .Protos}}{{.C}};
{{end}}
/* Offered by the plugin to hand-written adapters. */
{{range .Declared}}{{.C}};
{{end}}
#endif
`

// prototypeOf spells the C prototype of a Go function.
func prototypeOf(c *plan.Core) string {
	var ps []string
	for _, q := range c.Params {
		ps = append(ps, q.C+" "+q.Name)
	}
	if len(ps) == 0 {
		ps = []string{"void"}
	}
	return "int " + c.CFunc + "(" + strings.Join(ps, ", ") + ")"
}

// exports emits plugin/zz_exports.go: the Go functions that C calls. Each
// recovers from panics and leaves errors to the plugin's result.go.
func exports(p *plan.Plan, out tree) error {
	f := goFile("plugin")
	f.ImportName("weft/abi", "abi")
	f.CgoPreamble("#cgo CFLAGS: -std=gnu11 -I${SRCDIR}/../headers\n#include \"zz_slow.h\"")
	for _, c := range p.Cores {
		if inGo(c) {
			export(f, c)
		}
	}
	text, err := render(f)
	out["plugin/zz_exports.go"] = text
	return err
}

func export(f *jen.File, c *plan.Core) {
	const abi = "weft/abi"
	impl := c.Family.C() + "Impl"
	var params, values []jen.Code
	var clear []jen.Code
	for _, q := range c.Params {
		id := goParam(q.Name)
		params = append(params, jen.Id(id).Add(cgoType(q)))
		v := jen.Id(id)
		switch {
		case q.Role == plan.Opaque:
			v = jen.Uintptr().Call(v)
		case q.Role == plan.Memory, q.Role == plan.MemoryList:
		case q.Role == plan.StructIn, q.Role == plan.StructOut:
			t, stars := q.Type, ""
			for t.Kind == model.Pointer {
				t, stars = t.Elem, stars+"*"
			}
			v = jen.Parens(jen.Op(stars).Qual(abi, curGoName(t))).Call(jen.Qual("unsafe", "Pointer").Call(v))
			if q.Role == plan.StructOut && stars == "*" {
				clear = append(clear, jen.Op("*").Id("a").Dot(goName(q.Name)).Op("=").Qual(abi, curGoName(t)).Values())
			}
		case q.Role == plan.OpaqueOut, q.Role == plan.Text, q.Type.Kind == model.Pointer:
			v = jen.Parens(qualified(argType(q), q, abi)).Call(jen.Qual("unsafe", "Pointer").Call(v))
		default:
			v = qualified(argType(q), q, abi).Call(v)
		}
		values = append(values, jen.Id(goName(q.Name)).Op(":").Add(v))
	}
	body := []jen.Code{
		jen.Defer().Func().Params().Block(
			jen.If(jen.Id("r").Op(":=").Recover(), jen.Id("r").Op("!=").Nil()).Block(
				jen.Id("rc").Op("=").Qual("C", "int").Call(jen.Id("recovered").Call(jen.Lit(callName(c.Family, c.Slot)), jen.Id("r"))),
			),
		).Call(),
		jen.Id("a").Op(":=").Qual(abi, argsName(c)).Values(values...),
	}
	body = append(body, clear...)
	body = append(body, jen.Return(jen.Qual("C", "int").Call(
		jen.Id("done").Call(jen.Lit(callName(c.Family, c.Slot)), jen.Id(impl).Call().Dot(goName(c.Slot)).Call(jen.Op("&").Id("a"))),
	)))
	var memory []string
	for _, q := range c.Params {
		if q.Role == plan.Memory {
			memory = append(memory, goParam(q.Name))
		}
	}
	f.Commentf("%s is %s.%s for C.", c.CFunc, c.Family, c.Slot)
	if memory != nil { // the vet pass wants to know which pointers are real
		f.Comment("memory: " + strings.Join(memory, ", "))
	}
	f.Comment("//")
	f.Comment("//export " + c.CFunc)
	f.Func().Id(c.CFunc).Params(params...).Params(jen.Id("rc").Qual("C", "int")).Block(body...)
}

// qualified adds the package to the name of an enumeration.
func qualified(s *jen.Statement, q *plan.CoreParam, pkg string) *jen.Statement {
	if q.Type.Kind == model.Enumeration && q.Type.Enum.Name != "" {
		return jen.Qual(pkg, goName(q.Type.Enum.Name))
	}
	return s
}

// cgoType spells a core parameter's type as cgo does.
func cgoType(q *plan.CoreParam) *jen.Statement {
	switch q.C {
	case "void*":
		return jen.Qual("unsafe", "Pointer")
	case "void**":
		return jen.Op("*").Qual("unsafe", "Pointer")
	}
	base := strings.TrimRight(strings.TrimPrefix(q.C, "const "), "*")
	s := jen.Null()
	if stars := len(q.C) - len(strings.TrimRight(q.C, "*")); stars > 0 {
		s = s.Op(strings.Repeat("*", stars))
	}
	return s.Qual("C", cgoName(base))
}

func cgoName(base string) string {
	switch base {
	case "unsigned int":
		return "uint"
	case "unsigned long":
		return "ulong"
	case "long long":
		return "longlong"
	}
	return strings.ReplaceAll(base, " ", "_")
}

// exportMap emits lib/zz_exports.map, the version script of the library.
func exportMap(p *plan.Plan, out tree) error {
	return execute(out, "lib/zz_exports.map", `/* {{.Header}} */
/* What the library exports; nothing is ever taken away. */
{
  global:
{{range .Tables}}    {{.Symbol}};
{{end}}  local:
    *;
};
`, map[string]any{"Header": Header, "Tables": p.Tables})
}
