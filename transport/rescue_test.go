package transport

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/report"
)

// Every goroutine and timer of this package and of verbs recovers: a panic in
// one would end the host's process.
func TestGoroutinesRecover(t *testing.T) {
	for dir, least := range map[string]int{".": 10, "verbs": 1} {
		t.Run(dir, func(t *testing.T) { goroutinesRecover(t, dir, least) })
	}
}

func goroutinesRecover(t *testing.T, dir string, least int) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	bodies := map[string][]*ast.BlockStmt{} // methods begin with a dot; several types may have one of that name
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(set, name, text, 0)
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
	roots := 0
	check := func(at token.Pos, root ast.Expr) {
		roots++
		if !allRecover(bodiesOf(root, bodies), bodies) {
			t.Errorf("%v: a goroutine or timer without rescue", set.Position(at))
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
	if roots < least {
		t.Errorf("found %d goroutines and timers: the test looks in the wrong place", roots)
	}
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
				if fun.Name == "rescue" {
					return true
				}
			case *ast.SelectorExpr: // a.rescue of verbs
				if fun.Sel.Name == "rescue" {
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

func TestPanicBecomesAnError(t *testing.T) {
	log := &report.Recorder{}
	told := make(chan error, 1)
	go func() {
		defer rescue(log, "connect", func(err error) { told <- err })
		panic("a defect")
	}()
	err := <-told
	if report.CauseOf(err) != report.Internal || log.Count("WARN", "a defect") != 1 || !strings.Contains(err.Error(), "please report") {
		t.Errorf("%v, log %q", err, log.Lines())
	}
}

// A reaper whose goroutine met a defect lets go of its streams and serves again.
func TestReaperAfterADefect(t *testing.T) {
	r := newReaper(time.Minute, report.Discard{})
	r.mu.Lock()
	if !r.start() {
		t.Fatal("no reaper")
	}
	r.order = []*draining{nil} // the defect
	r.mu.Unlock()
	for range 1000 {
		r.mu.Lock()
		running := r.running
		r.mu.Unlock()
		if !running {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the reaper still runs")
}
