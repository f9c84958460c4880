package ibv

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// unplaced are the calls of libibverbs that take no place: they return at once, on the data path or for events that are there.
var unplaced = map[string]bool{
	"FreeDeviceList": true, "GetAsyncEvent": true, "AckAsyncEvent": true,
	"PostProof": true, "PollOne": true,
}

// Whatever may hold its thread takes a place first: the kept threads suffice for no more.
func TestSlowCallsTakePlaces(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"load.go", "mlx5.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
				return true
			}
			call, isField := a.Lhs[0].(*ast.SelectorExpr)
			f, isFunc := a.Rhs[0].(*ast.FuncLit)
			if !isField || !isFunc || !callsC(f) {
				return true
			}
			seen[call.Sel.Name] = true
			if takes(f) == unplaced[call.Sel.Name] {
				t.Errorf("%s: %s takes a place: %v", name, call.Sel.Name, takes(f))
			}
			return false
		})
	}
	if len(seen) < 30 {
		t.Errorf("%d calls were found", len(seen))
	}
	for name := range unplaced {
		if !seen[name] {
			t.Errorf("%s is no call", name)
		}
	}
}

// callsC leaves out what stands in for a library that is not there.
func callsC(f *ast.FuncLit) (calls bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "weft_") {
			calls = true
		}
		return true
	})
	return calls
}

// takes tells whether a function begins with defer placed()().
func takes(f *ast.FuncLit) bool {
	d, ok := f.Body.List[0].(*ast.DeferStmt)
	if !ok {
		return false
	}
	give, ok := d.Call.Fun.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := give.Fun.(*ast.Ident)
	return ok && id.Name == "placed"
}
