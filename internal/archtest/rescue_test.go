package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// Every goroutine and timer of the library recovers: a panic in one would end the host's process.
func TestGoroutinesRecover(t *testing.T) {
	folders := map[string][]string{}
	for _, g := range sources(t) {
		if level, _ := layer(g.pkg); level >= 0 && !g.test {
			folders[g.pkg] = append(folders[g.pkg], g.name)
		}
	}
	roots := 0
	for _, files := range folders {
		roots += goroutinesRecover(t, files)
	}
	if roots < 11 {
		t.Errorf("found %d goroutines and timers: the test looks in the wrong place", roots)
	}
}

// goroutinesRecover looks at the files of a package and returns how many goroutines and timers they start.
func goroutinesRecover(t *testing.T, files []string) (roots int) {
	set := token.NewFileSet()
	bodies := map[string][]*ast.BlockStmt{} // methods begin with a dot; several types may have one of that name
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(set, path.Base(name), read(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				name := fn.Name.Name
				if fn.Recv != nil {
					name = "." + name
				}
				bodies[name] = append(bodies[name], fn.Body)
			}
		}
	}
	check := func(at token.Pos, root ast.Expr) {
		roots++
		if !allRecover(bodiesOf(root, bodies), bodies) {
			t.Errorf("%s: %v: a goroutine or timer without task.Rescue", path.Dir(files[0]), set.Position(at))
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				check(n.Pos(), n.Call.Fun)
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "AfterFunc" {
					check(n.Pos(), n.Args[1])
				}
			}
			return true
		})
	}
	return roots
}

// bodiesOf is what may run in the goroutine.
func bodiesOf(root ast.Expr, bodies map[string][]*ast.BlockStmt) []*ast.BlockStmt {
	switch root := root.(type) {
	case *ast.FuncLit:
		return []*ast.BlockStmt{root.Body}
	case *ast.Ident:
		return bodies[root.Name]
	case *ast.SelectorExpr:
		return bodies["."+root.Sel.Name]
	}
	return nil
}

func allRecover(all []*ast.BlockStmt, bodies map[string][]*ast.BlockStmt) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(b *ast.BlockStmt) bool { return !recovers(b, bodies) })
}

// recovers reports whether body defers rescue, does nothing but call a function
// that does, or is a single statement that has nothing of ours in it.
func recovers(body *ast.BlockStmt, bodies map[string][]*ast.BlockStmt) bool {
	for _, s := range body.List {
		if d, ok := s.(*ast.DeferStmt); ok {
			switch fun := d.Call.Fun.(type) {
			case *ast.Ident:
				if fun.Name == "Rescue" { // within task
					return true
				}
			case *ast.SelectorExpr: // task.Rescue, a.rescue of verbs
				if strings.EqualFold(fun.Sel.Name, "rescue") {
					return true
				}
			}
		}
	}
	if len(body.List) != 1 {
		return false
	}
	switch s := body.List[0].(type) {
	case *ast.ForStmt: // for r.step() {}
		call, ok := s.Cond.(*ast.CallExpr)
		return ok && len(s.Body.List) == 0 && allRecover(bodiesOf(call.Fun, bodies), bodies)
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			mine := bodiesOf(call.Fun, bodies)
			return len(mine) == 0 || allRecover(mine, bodies)
		}
		return true // a receive
	}
	return false
}
