package model

import (
	"strconv"
	"strings"
)

// String returns the type as C spells it without a declarator, in the style
// of the headers: "const char*", "void**", "int (*)(void*, int)".
func (t *Type) String() string { return t.Declare("") }

// Declare returns a C declaration of name with type t, without a semicolon.
func (t *Type) Declare(name string) string {
	base, decl := t.declarator(name)
	if decl == "" {
		return base
	}
	for { // stars belong to the type: "const char* const* list"
		rest, star := strings.CutPrefix(decl, "*")
		if !star {
			break
		}
		base += "*"
		if after, konst := strings.CutPrefix(rest, "const "); konst {
			base, rest = base+" const", after
		}
		decl = rest
	}
	if decl == "" {
		return base
	}
	if strings.HasPrefix(decl, "[") {
		return base + decl
	}
	return base + " " + decl
}

// declarator splits the declaration of name into its base type and what
// stands around the name.
func (t *Type) declarator(name string) (base, decl string) {
	if t.Name != "" || t.Elem == nil && t.Func == nil {
		return t.base(), name
	}
	switch t.Kind {
	case Pointer:
		d := "*"
		if t.Const {
			d = "*const "
		}
		d += name
		if t.Elem.Name == "" && (t.Elem.Kind == Function || t.Elem.Kind == Array) {
			d = "(" + d + ")"
		}
		return t.Elem.declarator(d)
	case Array:
		return t.Elem.declarator(name + "[" + strconv.FormatInt(t.Len, 10) + "]")
	}
	return t.Func.Result.declarator(name + t.Func.signature())
}

func (t *Type) base() string {
	s := t.Name
	if s == "" {
		s = t.Kind.String()
	}
	if t.Const {
		return "const " + s
	}
	return s
}

// signature returns the parameter list with types and names.
func (f *Func) signature() string {
	if len(f.Params) == 0 && !f.Variadic {
		return "(void)"
	}
	var ps []string
	for _, p := range f.Params {
		ps = append(ps, p.Type.Declare(p.Name))
	}
	if f.Variadic {
		ps = append(ps, "...")
	}
	return "(" + strings.Join(ps, ", ") + ")"
}

// String returns the function as a C prototype without a semicolon.
func (f *Func) String() string {
	base, decl := f.Result.declarator(f.Name + f.signature())
	return strings.TrimSpace(base + " " + decl)
}
