package emit

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// goType gives the Go mirror of a C type inside a struct. parent names the
// type of a struct declared in place.
func goType(t *model.Type, parent string) *jen.Statement {
	switch t.Kind {
	case model.Bool:
		return jen.Bool()
	case model.Int:
		return jen.Id(fmt.Sprintf("int%d", t.Size*8))
	case model.Uint:
		return jen.Id(fmt.Sprintf("uint%d", t.Size*8))
	case model.Float:
		return jen.Id(fmt.Sprintf("float%d", t.Size*8))
	case model.Enumeration:
		if t.Enum.Name == "" {
			return jen.Id("uint32")
		}
		return jen.Id(goName(t.Enum.Name))
	case model.Array:
		return jen.Index(jen.Lit(int(t.Len))).Add(goType(t.Elem, parent))
	case model.Struct, model.Union:
		if t.Name != "" {
			return jen.Id(goName(t.Name))
		}
		return jen.Id(parent)
	case model.Pointer:
		switch e := t.Elem; {
		case e.Kind == model.Void, e.Kind == model.Function, e.Record != nil && e.Record.Incomplete:
			return jen.Uintptr()
		case e.Kind == model.Int && e.Size == 1:
			return jen.Op("*").Byte()
		default:
			return jen.Op("*").Add(goType(e, parent))
		}
	}
	panic(fmt.Sprintf("emit: no Go type for %s (%s)", t, t.Kind))
}

// argType gives the Go type of a core parameter in an args struct.
func argType(q *plan.CoreParam) *jen.Statement {
	switch q.Role {
	case plan.Opaque:
		return jen.Uintptr()
	case plan.OpaqueOut:
		return jen.Op("*").Uintptr()
	case plan.Memory:
		return jen.Qual("unsafe", "Pointer")
	case plan.MemoryList:
		return jen.Op("*").Qual("unsafe", "Pointer")
	case plan.Text:
		return jen.Op("*").Byte()
	case plan.StructIn, plan.StructOut:
		t, s := q.Type, jen.Null()
		for t.Kind == model.Pointer {
			t, s = t.Elem, s.Op("*")
		}
		return s.Add(jen.Id(curGoName(t)))
	}
	return goType(q.Type, "")
}

// curGoName names the newest version of a struct without its version.
func curGoName(t *model.Type) string {
	if stem, _, ok := plan.Split(t.Name); ok {
		return goName(stem)
	}
	return goName(t.Name)
}
