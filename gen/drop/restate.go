package drop

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"weft/gen/model"
	"weft/gen/source"
)

// restate writes the headers of all new tables in our own layout: path in
// headers/ -> text.
func restate(ours, theirs *model.Unit) map[string]string {
	tables := newTables(ours, theirs)
	byHeader := map[string][]*model.Table{}
	var headers []string
	for _, t := range tables {
		h := t.Family.Header(t.Version)
		if byHeader[h] == nil {
			headers = append(headers, h)
		}
		byHeader[h] = append(byHeader[h], t)
	}
	for _, t := range ours.Tables { // a header that we hold already gains a family
		if also := theirs.Table(t.Family, t.Version); also != nil && byHeader[t.Header] != nil {
			byHeader[t.Header] = append([]*model.Table{also}, byHeader[t.Header]...)
		}
	}
	sort.SliceStable(headers, func(i, j int) bool { return byHeader[headers[i]][0].Version < byHeader[headers[j]][0].Version })
	home := map[string]string{} // type -> header
	for _, t := range ours.Typedefs {
		home[t.Name] = t.Pos.File
	}
	texts := map[string]string{}
	for _, h := range headers {
		texts[h] = header(ours, theirs, h, byHeader[h], home)
	}
	return texts
}

func header(ours, theirs *model.Unit, name string, tables []*model.Table, home map[string]string) string {
	var roots []string
	for _, t := range tables {
		roots = append(roots, t.Record.Name)
	}
	includes := map[string]bool{}
	var body strings.Builder
	all := source.Closure(theirs, roots...)
	for _, m := range theirs.Macros { // limits of this version, such as array lengths
		if mine := ours.Macro(m.Name); (mine == nil || mine.Pos.File == name) && m.Pos.File == tables[0].Header && m.Kind != model.MacroText {
			fmt.Fprintf(&body, "#define %s %s\n", m.Name, strings.ReplaceAll(value(m), "--", "- -"))
		}
	}
	if body.Len() > 0 {
		body.WriteByte('\n')
	}
	for i, t := range all {
		if h := home[t.Name]; h != "" && h != name {
			continue
		}
		home[t.Name] = name
		for _, n := range source.Refers(t, func(n string) bool { return home[n] != "" }) {
			if h := home[n]; h != name {
				includes[h] = true
			}
		}
		for _, tab := range tables {
			if tab.Record.Name == t.Name {
				fmt.Fprintf(&body, "/* %s */\n", tab.Symbol)
			}
		}
		source.Declare(&body, t, predecessor(ours, t.Name))
		if i < len(all)-1 {
			body.WriteByte('\n')
		}
	}
	var b strings.Builder
	guard := "WEFT_" + strings.ToUpper(strings.NewReplacer("/", "_", ".", "_").Replace(name))
	fmt.Fprintf(&b, "/* %s, version %d. */\n#ifndef %s\n#define %s\n\n", tables[0].Family.Title(), tables[0].Version, guard, guard)
	b.WriteString("#include <stdbool.h>\n#include <sys/types.h>\n\n")
	includes["nccl/common.h"] = true
	var hs []string
	for h := range includes {
		hs = append(hs, path.Base(h))
	}
	sort.Strings(hs)
	for _, h := range hs {
		fmt.Fprintf(&b, "#include %q\n", h)
	}
	fmt.Fprintf(&b, "\n%s\n#endif\n", strings.TrimRight(body.String(), "\n")+"\n")
	return b.String()
}

func value(m *model.Macro) string {
	switch m.Kind {
	case model.MacroUint:
		return fmt.Sprintf("%#xU", m.Uint)
	case model.MacroString:
		return fmt.Sprintf("%q", m.Str)
	}
	return fmt.Sprint(m.Int)
}
