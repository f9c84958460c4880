// Package exportvet is a vet pass over the functions that C calls: each recovers panics, and none takes an opaque value as a Go pointer.
package exportvet

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer is the pass.
var Analyzer = &analysis.Analyzer{
	Name: "weftexport",
	Doc: `check functions that are exported to C

A panic that leaves an exported function aborts the host: the first statement defers a recovery.
An unsafe.Pointer parameter that holds 0x1 aborts the host too, as soon as the collector sees it: opaque values are uintptr;
a parameter that really points to memory is named in the doc comment, "// memory: handle".`,
	Run: run,
}

var (
	export = regexp.MustCompile(`^//export\s+(\w+)`)
	memory = regexp.MustCompile(`^//\s*memory:\s*(.*)$`)
)

func run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			if name, named := exported(f.Doc); name != "" {
				check(pass, f, name, named)
			}
		}
	}
	return nil, nil
}

// exported returns the C name of a function and the parameters that its comment says point to memory.
func exported(doc *ast.CommentGroup) (name string, named map[string]bool) {
	named = map[string]bool{}
	for _, c := range doc.List {
		if m := export.FindStringSubmatch(c.Text); m != nil {
			name = m[1]
		}
		if m := memory.FindStringSubmatch(c.Text); m != nil {
			for _, p := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
				named[p] = true
			}
		}
	}
	return name, named
}

func check(pass *analysis.Pass, f *ast.FuncDecl, name string, named map[string]bool) {
	if f.Body != nil && !recovers(f.Body) {
		pass.Reportf(f.Pos(), "%s is called by C but its first statement defers no recover(): a panic would abort the host", name)
	}
	for _, field := range f.Type.Params.List {
		basic, ok := pass.TypesInfo.TypeOf(field.Type).Underlying().(*types.Basic)
		if !ok || basic.Kind() != types.UnsafePointer {
			continue
		}
		for _, id := range field.Names {
			if !named[id.Name] {
				pass.Reportf(id.Pos(), "parameter %s of %s is an unsafe.Pointer: take opaque values as uintptr, or say that it is memory with a line \"// memory: %[1]s\"", id.Name, name)
			}
			delete(named, id.Name)
		}
	}
	for p := range named {
		pass.Reportf(f.Pos(), "the comment of %s names %s as memory, which is no unsafe.Pointer parameter", name, p)
	}
}

// recovers says whether the body begins with a deferred function literal that calls recover.
func recovers(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return true // nothing that could panic
	}
	d, ok := body.List[0].(*ast.DeferStmt)
	if !ok {
		return false
	}
	lit, ok := d.Call.Fun.(*ast.FuncLit)
	if !ok {
		return false
	}
	found := false
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "recover" {
				found = true
			}
		}
		return !found
	})
	return found
}
