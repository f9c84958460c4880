package model

// SameShape reports whether two types mean the same to a caller: the same
// representation and the same members, whatever the typedefs, tags and
// parameters are called.
func SameShape(a, b *Type) bool { return sameShape(a, b, map[[2]*Record]bool{}) }

func sameShape(a, b *Type, seen map[[2]*Record]bool) bool {
	if a == nil || b == nil || a.Kind != b.Kind || a.Size != b.Size || a.Const != b.Const {
		return a == b
	}
	switch a.Kind {
	case Pointer:
		return sameShape(a.Elem, b.Elem, seen)
	case Array:
		return a.Len == b.Len && sameShape(a.Elem, b.Elem, seen)
	case Struct, Union:
		return sameRecord(a.Record, b.Record, seen)
	case Function:
		return sameFunc(a.Func, b.Func, seen)
	}
	return true
}

func sameRecord(a, b *Record, seen map[[2]*Record]bool) bool {
	pair := [2]*Record{a, b}
	if a == b || seen[pair] {
		return true
	}
	seen[pair] = true
	if a.Size != b.Size || a.Align != b.Align || len(a.Fields) != len(b.Fields) {
		return false
	}
	for i, f := range a.Fields {
		g := b.Fields[i]
		if f.Name != g.Name || f.Offset != g.Offset || !sameShape(f.Type, g.Type, seen) {
			return false
		}
	}
	return true
}

func sameFunc(a, b *Func, seen map[[2]*Record]bool) bool {
	if a.Variadic != b.Variadic || len(a.Params) != len(b.Params) || !sameShape(a.Result, b.Result, seen) {
		return false
	}
	for i, p := range a.Params {
		if !sameShape(p.Type, b.Params[i].Type, seen) {
			return false
		}
	}
	return true
}
