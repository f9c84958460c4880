package emit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// hostTables emits tools/host/zz_tables.inc: every version for the templates
// that call it. A version newer than they were written for gets a view, which
// has the functions of the newest that they know.
func hostTables(p *plan.Plan, out tree) error {
	type entry struct {
		*plan.Table
		Kind, Include, Type string
		View                *view
	}
	var tables []entry
	named := map[string]bool{}
	for _, t := range p.Tables {
		e := entry{Table: t, Kind: t.Family.C(), Include: path.Base(t.Header), Type: t.Record.Name}
		if w := p.Witness[t.Family]; t.Version > w {
			e.View = viewOf(p.Unit, p.Unit.Table(t.Family, w), t.Table, named)
			e.Type = "struct " + e.View.Name
		}
		tables = append(tables, e)
	}
	return execute(out, "tools/host/zz_tables.inc", hostTemplate, map[string]any{"Header": Header, "Tables": tables, "Families": model.Families})
}

const hostTemplate = `/* {{.Header}} */
/* Every table of headers/, called through its family's template. */
{{range .Tables}}
#include "{{.Include}}"
{{with .View}}{{range .Types}}{{.}}
{{end}}/* {{.Newer}} as {{.Older}} was called: what it adds is zero, or not called. */
struct {{.Name}} {
{{range .Members}}  {{.}};
{{end}}};
static struct {{.Name}} {{.Name}};
static void {{.Name}}_see(const void* table);
static struct view {{.Name}}_of = {.see = {{.Name}}_see, .seen = &{{.Name}}, .news = "{{.News}}"};
{{range .Thunks}}{{.}}
{{end}}static void {{.Name}}_see(const void* table) {
  const {{.Newer}}* real = table;
  {{.Name}}_of.real = table;
  {{.Name}}.name = real->name;
{{range .Fill}}  {{.}}
{{end}}}
{{end}}#define V {{.Version}}
#define TABLE {{.Type}}
#define VIEW {{if .View}}&{{.View.Name}}_of{{else}}NULL{{end}}
#include "{{.Kind}}_call.inc"
{{end}}
{{range $f := .Families}}static const struct table* const {{$f.C}}[] = {
{{range $.Tables}}{{if eq .Family $f}}    [{{.Version}}] = &{{$f.C}}_table_v{{.Version}},
{{end}}{{end}}};
{{end}}
/* The families, and what their tables are called in a library. */
static const struct family {
  const char *name, *symbol;
  const struct table* const* tables;
  int end;
} families[] = {
{{range .Families}}    {"{{.C}}", "{{.Stem}}", {{.C}}, sizeof {{.C}} / sizeof *{{.C}}},
{{end}}};
`

// view is a table that is newer than the host's templates, as they call it.
type view struct {
	Name         string // net_view_v13
	Newer, Older string // types of the tables
	Types        []string
	Members      []string
	Thunks       []string
	Fill         []string
	News         string // what is zero or not called
}

// viewOf shows a table as an older one is called. named holds the types that
// views have declared.
func viewOf(u *model.Unit, older, newer *model.Table, named map[string]bool) *view {
	v := &view{Name: fmt.Sprintf("%s_view_v%d", newer.Family.C(), newer.Version), Newer: newer.Record.Name, Older: older.Record.Name}
	v.Types = stillNamed(u, older.Version, newer, named)
	var news []string
	for _, f := range newer.Record.Fields {
		if g, _ := older.Record.Field(f.Name); g == nil && f.Type.IsFuncPtr() {
			news = append(news, f.Name+" is not called")
		}
	}
	for _, g := range older.Record.Fields {
		f, _ := newer.Record.Field(g.Name)
		if !g.Type.IsFuncPtr() || f == nil {
			v.Members = append(v.Members, g.Type.Declare(g.Name)) // a function that is gone stays NULL
			continue
		}
		now, before := f.Type.Elem.Func, g.Type.Elem.Func
		var params, args []string
		for _, q := range before.Params {
			if r := now.Param(q.Name); r != nil {
				q = r
			}
			params = append(params, q.Type.Declare(q.Name))
		}
		for _, q := range now.Params {
			if before.Param(q.Name) != nil {
				args = append(args, q.Name)
				continue
			}
			args = append(args, "("+q.Type.String()+"){0}")
			news = append(news, fmt.Sprintf("%s of %s is 0", q.Name, f.Name))
		}
		list := strings.Join(params, ", ")
		if list == "" {
			list = "void"
		}
		v.Members = append(v.Members, fmt.Sprintf("%s (*%s)(%s)", now.Result, g.Name, list))
		if slices.EqualFunc(now.Params, before.Params, func(a, b *model.Param) bool { return a.Name == b.Name }) {
			v.Fill = append(v.Fill, fmt.Sprintf("%s.%s = real->%s;", v.Name, g.Name, g.Name))
			continue
		}
		thunk := v.Name + "_" + g.Name
		v.Thunks = append(v.Thunks, fmt.Sprintf("static %s %s(%s) {\n%s  return ((const %s*)%s_of.real)->%s(%s);\n}",
			now.Result, thunk, list, unused(now, before), v.Newer, v.Name, g.Name, strings.Join(args, ", ")))
		v.Fill = append(v.Fill, fmt.Sprintf("%s.%s = real->%s ? %s : NULL;", v.Name, g.Name, g.Name, thunk))
	}
	v.News = strings.Join(news, ", ")
	return v
}

// unused mentions the parameters that the newer function does not take.
func unused(now, before *model.Func) string {
	var b strings.Builder
	for _, q := range before.Params {
		if now.Param(q.Name) == nil {
			fmt.Fprintf(&b, "  (void)%s;\n", q.Name)
		}
	}
	return b.String()
}

// stillNamed declares the types that a newer version has under an older
// version's name, since templates name every type by the version's number.
func stillNamed(u *model.Unit, older int, newer *model.Table, named map[string]bool) []string {
	var list []string
	for _, t := range u.Typedefs {
		stem, v, ok := plan.Split(t.Name)
		name := fmt.Sprintf("%s_v%d_t", stem, newer.Version)
		if !ok || v != older || u.Typedef(name) != nil || named[name] || home(t.Pos.File) != home(newer.Header) {
			continue
		}
		newest := t.Name
		for k := v; k < newer.Version; k++ {
			if between := fmt.Sprintf("%s_v%d_t", stem, k); u.Typedef(between) != nil {
				newest = between
			}
		}
		named[name] = true
		list = append(list, fmt.Sprintf("typedef %s %s;", newest, name))
	}
	return list
}

// home is the stem of a header, net_v12.h or net_device.h: versions are counted
// together under it.
func home(header string) string {
	stem, _, _ := strings.Cut(path.Base(header), "_")
	return stem
}

// hostVersions emits internal/host/zz_versions.go: what versions there are.
func hostVersions(p *plan.Plan, out tree) error {
	f := goFile("host")
	f.Comment("families are all of them, with what their tables are called in a library, the first and the newest version, and the newest that tools/host calls by hand.")
	f.Var().Id("families").Op("=").Index().Id("span").Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, spansOf(p)...)
	text, err := render(f)
	out["internal/host/zz_versions.go"] = text
	return err
}

func spansOf(p *plan.Plan) (all []jen.Code) {
	for _, fam := range model.Families {
		if first, newest := span(p, fam); newest > 0 {
			all = append(all, jen.Values(jen.Lit(fam.C()), jen.Lit(fam.Stem()), jen.Lit(first), jen.Lit(newest), jen.Lit(p.Witness[fam])))
		}
	}
	return all
}
