package plan

import "weft/gen/model"

// same reports whether two types have the same representation: the same kind
// and size after typedefs, and for records the same fields under the same
// names at the same places.
func same(a, b *model.Type) bool {
	if a.Kind != b.Kind || a.Size != b.Size || a.Align != b.Align {
		return false
	}
	switch a.Kind {
	case model.Pointer:
		if a.Elem.Const && !b.Elem.Const {
			return false // the core could write what the host gave as constant
		}
		return same(a.Elem, b.Elem)
	case model.Array:
		return a.Len == b.Len && same(a.Elem, b.Elem)
	case model.Struct, model.Union:
		return a.Record == b.Record || sameFields(a.Record, b.Record)
	case model.Enumeration:
		return a.Enum == b.Enum || a.Name == b.Name && a.Name != ""
	case model.Function:
		return a.Func == b.Func || a.Func.String() == b.Func.String()
	}
	return true
}

func sameFields(a, b *model.Record) bool {
	if a.Size != b.Size || a.Align != b.Align || len(a.Fields) != len(b.Fields) || a.Incomplete || b.Incomplete {
		return false
	}
	for i, f := range a.Fields {
		g := b.Fields[i]
		if f.Name != g.Name || f.Offset != g.Offset || !same(f.Type, g.Type) {
			return false
		}
	}
	return true
}

// widens reports whether every value of a is a value of b: same or wider,
// unsigned to unsigned or signed to signed, or bool.
func widens(a, b *model.Type) bool {
	switch a.Kind {
	case model.Bool:
		return b.Kind == model.Bool
	case model.Int:
		return b.Kind == model.Int && a.Size <= b.Size
	case model.Uint:
		return b.Kind == model.Uint && a.Size <= b.Size || b.Kind == model.Int && a.Size < b.Size
	}
	return false
}

// counts reports whether an int a becomes an unsigned b, once it is known not
// to be negative.
func counts(a, b *model.Type) bool {
	return a.Kind == model.Int && b.Kind == model.Uint && a.Size <= b.Size
}

// deref returns what a pointer points to and how many stars there are.
func deref(t *model.Type) (*model.Type, int) {
	stars := 0
	for t.Kind == model.Pointer && t.Elem != nil && t.Name == "" {
		t = t.Elem
		stars++
	}
	return t, stars
}
