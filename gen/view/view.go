// Package view makes, of a C header of our own, the Go mirror that Go code
// reads the same memory through, and the C file in which the compiler confirms
// the layout that both were made from.
package view

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/dave/jennifer/jen"
	"weft/gen/model"
	"weft/gen/output"
	"weft/gen/parse"
)

// Header names a header that has a view.
type Header struct {
	Path    string // from the root of the repository
	Package string // of the Go mirror
	Prefix  string // of its names, cut off in Go: "wf"
}

// Headers are the headers with a view.
var Headers = []Header{
	{Path: "transport/fastpath/layout.h", Package: "fastpath", Prefix: "wf"},
}

// Files returns the views of those Headers that exist under root.
func Files(root fs.FS) ([]output.File, error) {
	var files []output.File
	for _, h := range Headers {
		if _, err := fs.Stat(root, h.Path); err != nil {
			continue
		}
		u, err := parse.Fastpath(root, h.Path)
		if err != nil {
			return nil, err
		}
		goFile, err := mirror(h, u)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(h.Path)
		files = append(files,
			output.File{Path: path.Join(dir, "zz_view.go"), Data: goFile},
			output.File{Path: path.Join(dir, "zz_assert.c"), Data: assertions(h, u)})
	}
	return files, nil
}

// mirror writes the Go view: constants, struct mirrors, and assertions that
// the Go compiler lays them out as the header does.
func mirror(h Header, u *model.Unit) ([]byte, error) {
	f := jen.NewFile(h.Package)
	f.HeaderComment("// " + output.Banner)
	f.HeaderComment("// From " + path.Base(h.Path) + ". Memory of these types belongs to C: pointers in it are plain words here.")
	if err := constants(f, h, u); err != nil {
		return nil, err
	}
	for _, r := range u.Records {
		if err := record(f, h, r); err != nil {
			return nil, err
		}
	}
	layout(f, h, u)
	var b bytes.Buffer
	if err := f.Render(&b); err != nil {
		return nil, fmt.Errorf("view of %s: %w", h.Path, err)
	}
	return b.Bytes(), nil
}

func constants(f *jen.File, h Header, u *model.Unit) error {
	used := map[string]string{}
	name := func(c string, at model.Pos) (string, error) {
		g := goName(h, c)
		if other, dup := used[g]; dup {
			return "", &parse.Refusal{Pos: at, What: fmt.Sprintf("%s and %s are both %s in Go", c, other, g)}
		}
		used[g] = c
		return g, nil
	}
	var defs []jen.Code
	for _, m := range u.Macros {
		var v jen.Code
		switch m.Kind {
		case model.MacroInt:
			v = number(m.Text, uint64(m.Int), m.Int < 0)
		case model.MacroUint:
			v = number(m.Text, m.Uint, false)
		case model.MacroString:
			v = jen.Lit(m.Str)
		default:
			continue
		}
		g, err := name(m.Name, m.Pos)
		if err != nil {
			return err
		}
		defs = append(defs, commented(jen.Id(g).Op("=").Add(v), m.Doc)...)
	}
	if len(defs) > 0 {
		f.Commentf("Macros of %s.", path.Base(h.Path))
		f.Const().Defs(defs...)
	}
	for _, e := range u.Enums {
		var defs []jen.Code
		for _, v := range e.Values {
			g, err := name(v.Name, v.Pos)
			if err != nil {
				return err
			}
			defs = append(defs, commented(jen.Id(g).Op("=").Op(fmt.Sprint(v.Value)), v.Doc)...)
		}
		if e.Name != "" {
			for _, line := range paragraph(sentence(e.Name, e.Doc)) {
				f.Add(line)
			}
		}
		f.Const().Defs(defs...)
	}
	return nil
}

// number keeps hexadecimal numbers hexadecimal.
func number(text string, v uint64, negative bool) jen.Code {
	switch {
	case negative:
		return jen.Op(fmt.Sprint(int64(v)))
	case strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X"):
		return jen.Op(fmt.Sprintf("%#x", v))
	}
	return jen.Op(fmt.Sprint(v))
}

// commented puts a short comment behind a line and a long one above it.
func commented(s *jen.Statement, doc string) []jen.Code {
	switch {
	case doc == "":
		return []jen.Code{s}
	case len(doc) <= 90:
		return []jen.Code{s.Comment(doc)}
	}
	return append(paragraph(doc), s)
}

// paragraph breaks a comment into lines.
func paragraph(doc string) []jen.Code {
	var lines []jen.Code
	line := ""
	for _, w := range strings.Fields(doc) {
		if len(line)+len(w) > 100 {
			lines = append(lines, jen.Comment(line))
			line = ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(lines, jen.Comment(line))
}

func sentence(name, doc string) string {
	if doc == "" {
		return name
	}
	return name + ": " + doc
}
