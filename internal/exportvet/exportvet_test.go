package exportvet

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/analysis"
)

const good = `defer func() { if r := recover(); r != nil { rc = 3 } }()`

func TestExports(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"not exported", `func f(p unsafe.Pointer) int { return 0 }`, nil},
		{"recovers", "//export f\nfunc f(p uintptr) (rc int) { " + good + "; return 0 }", nil},
		{"no recover", "//export f\nfunc f() (rc int) { return 0 }",
			[]string{"f is called by C but its first statement defers no recover(): a panic would abort the host"}},
		{"recover too late", "//export f\nfunc f() (rc int) { rc = g(); " + good + "; return 0 }\nfunc g() int { return 0 }",
			[]string{"f is called by C but its first statement defers no recover(): a panic would abort the host"}},
		{"defers something else", "//export f\nfunc f() (rc int) { defer func() { rc = 1 }(); return 0 }",
			[]string{"f is called by C but its first statement defers no recover(): a panic would abort the host"}},
		{"opaque as pointer", "//export f\nfunc f(comm unsafe.Pointer) (rc int) { " + good + "; return 0 }",
			[]string{`parameter comm of f is an unsafe.Pointer: take opaque values as uintptr, or say that it is memory with a line "// memory: comm"`}},
		{"memory", "// f does.\n// memory: handle, data\n//\n//export f\nfunc f(handle, data unsafe.Pointer) (rc int) { " + good + "; return 0 }", nil},
		{"stale comment", "// memory: gone\n//export f\nfunc f() (rc int) { " + good + "; return 0 }",
			[]string{"the comment of f names gone as memory, which is no unsafe.Pointer parameter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, vet(t, "package p\nimport \"unsafe\"\nvar _ unsafe.Pointer\n"+c.src)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func vet(t *testing.T, src string) (said []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.Default()}
	if _, err := conf.Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	pass := &analysis.Pass{Analyzer: Analyzer, Fset: fset, Files: []*ast.File{file}, TypesInfo: info,
		Report: func(d analysis.Diagnostic) { said = append(said, d.Message) }}
	if _, err := run(pass); err != nil {
		t.Fatal(err)
	}
	return said
}
