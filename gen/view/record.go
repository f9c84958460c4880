package view

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"
	"weft/gen/model"
	"weft/gen/output"
	"weft/gen/parse"
)

// record writes the mirror of a struct. Padding is spelled out where Go would
// lay a field elsewhere (_Alignas, unions).
func record(f *jen.File, h Header, r *model.Record) error {
	if r.Union {
		return &parse.Refusal{Pos: r.Pos, What: "a union has no mirror in Go"}
	}
	fields := []jen.Code{jen.Id("_").Qual("structs", "HostLayout")}
	var end, align int64 = 0, 1
	for _, m := range r.Fields {
		t, a, err := goType(h, m)
		if err != nil {
			return err
		}
		if gap := m.Offset - up(end, a); gap > 0 {
			fields = append(fields, jen.Id("_").Index(jen.Lit(int(m.Offset-end))).Byte())
		}
		fields = append(fields, commented(jen.Id(lower(m.Name)).Add(t), m.Doc)...)
		end, align = m.Offset+m.Type.Size, max(align, a)
	}
	if up(end, align) < r.Size {
		fields = append(fields, jen.Id("_").Index(jen.Lit(int(r.Size-end))).Byte())
	}
	g := goName(h, r.Name)
	for _, line := range paragraph(sentence(g+" is "+r.Name, r.Doc)) {
		f.Add(line)
	}
	f.Type().Id(g).Struct(fields...)
	return nil
}

func up(n, align int64) int64 { return (n + align - 1) / align * align }

// goType returns the Go type of a field and its alignment in Go.
func goType(h Header, m *model.Field) (jen.Code, int64, error) {
	refuse := func(what string) (jen.Code, int64, error) {
		return nil, 0, &parse.Refusal{Pos: m.Pos, What: fmt.Sprintf("field %s: %s", m.Name, what)}
	}
	if m.Name == "" {
		return refuse("an anonymous struct or union has no mirror in Go")
	}
	t, dims := m.Type, jen.Null()
	for t.Kind == model.Array {
		dims.Index(jen.Lit(int(t.Len)))
		t = t.Elem
	}
	word := func(name string) (jen.Code, int64, error) { return dims.Id(name), t.Size, nil }
	switch t.Kind {
	case model.Int:
		return word(fmt.Sprintf("int%d", 8*t.Size))
	case model.Uint:
		return word(fmt.Sprintf("uint%d", 8*t.Size))
	case model.Float:
		return word(fmt.Sprintf("float%d", 8*t.Size))
	case model.Enumeration:
		if t.Enum.Signed {
			return word("int32")
		}
		return word("uint32")
	case model.Pointer:
		return word("uintptr")
	case model.Struct:
		if t.Record.Name == "" {
			return refuse("a struct declared in place has no mirror in Go")
		}
		if t.Record.Align > 8 {
			return refuse("Go cannot align a struct to more than 8 bytes")
		}
		return dims.Id(goName(h, t.Record.Name)), t.Record.Align, nil
	}
	return refuse(t.Kind.String() + " has no mirror in Go")
}

// layout asserts, at compile time, that Go agrees with the header.
func layout(f *jen.File, h Header, u *model.Unit) {
	zero := func(size jen.Code, want int64) jen.Code {
		return jen.Id("_").Op("=").Index(jen.Lit(1)).Struct().Values().Index(jen.Add(size).Op("-").Op(fmt.Sprint(want)))
	}
	var defs []jen.Code
	for _, r := range u.Records {
		g := goName(h, r.Name)
		of := func() jen.Code { return jen.Id(g).Values() }
		defs = append(defs, zero(jen.Qual("unsafe", "Sizeof").Call(of()), r.Size))
		for _, m := range r.Fields {
			at := jen.Qual("unsafe", "Offsetof").Call(jen.Add(of()).Dot(lower(m.Name)))
			defs = append(defs, zero(at, m.Offset))
		}
	}
	if len(defs) > 0 {
		f.Comment("Every size and offset is the header's: another value does not compile.")
		f.Var().Defs(defs...)
	}
}

// goName turns "struct wf_comm", "WF_NONE" or "weft_isend" into a Go name.
func goName(h Header, c string) string {
	c = strings.TrimPrefix(strings.TrimPrefix(c, "struct "), "enum ")
	c = strings.ToLower(c)
	if !strings.HasPrefix(c, h.Prefix+"_") {
		c = h.Prefix + "_" + c
	}
	return lower(c)
}

// lower turns snake_case into lowerCamelCase, away from Go's keywords.
func lower(c string) string {
	var b strings.Builder
	raise := false
	for i, r := range c {
		switch {
		case r == '_' && i > 0:
			raise = true
		case raise:
			b.WriteRune(unicode.ToUpper(r))
			raise = false
		default:
			b.WriteRune(r)
		}
	}
	switch s := b.String(); s {
	case "type", "func", "range", "map", "chan", "var", "go", "select", "package", "import", "interface", "defer", "fallthrough":
		return s + "_"
	default:
		return s
	}
}

// assertions writes the C twin: the compiler's own layout is the model's.
func assertions(h Header, u *model.Unit) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n#include %q\n\n#include <stddef.h>\n", output.Banner, path.Base(h.Path))
	for _, r := range u.Records {
		fmt.Fprintf(&b, "\n_Static_assert(sizeof(%s) == %d, \"size of %s\");\n", r.Name, r.Size, r.Name)
		fmt.Fprintf(&b, "_Static_assert(_Alignof(%s) == %d, \"alignment of %s\");\n", r.Name, r.Align, r.Name)
		for _, m := range r.Fields {
			if m.Name == "" {
				continue
			}
			fmt.Fprintf(&b, "_Static_assert(offsetof(%s, %s) == %d, \"offset of %s.%s\");\n", r.Name, m.Name, m.Offset, r.Name, m.Name)
			fmt.Fprintf(&b, "_Static_assert(sizeof(((%s*)0)->%s) == %d, \"size of %s.%s\");\n", r.Name, m.Name, m.Type.Size, r.Name, m.Name)
		}
	}
	for _, m := range u.Macros {
		switch m.Kind {
		case model.MacroInt:
			fmt.Fprintf(&b, "_Static_assert(%s == %d, \"value of %s\");\n", m.Name, m.Int, m.Name)
		case model.MacroUint:
			fmt.Fprintf(&b, "_Static_assert(%s == %du, \"value of %s\");\n", m.Name, m.Uint, m.Name)
		}
	}
	for _, e := range u.Enums {
		for _, v := range e.Values {
			fmt.Fprintf(&b, "_Static_assert(%s == %d, \"value of %s\");\n", v.Name, v.Value, v.Name)
		}
	}
	return b.Bytes()
}
