package knob

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"
)

// observed reads from the tables named "effects" of the tests which knobs are
// set and seen to change something. They stand where the effect is.
func observed(t *testing.T) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, dir := range []string{"transport/tcp", "transport/verbs", "transport", "internal/faults", "plugin"} {
		path := filepath.Join("..", "..", dir, "knobs_test.go")
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		before := len(seen)
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok || v.Names[0].Name != "effects" || len(v.Values) != 1 {
					continue
				}
				for _, row := range v.Values[0].(*ast.CompositeLit).Elts {
					name, err := strconv.Unquote(row.(*ast.CompositeLit).Elts[0].(*ast.BasicLit).Value)
					if err != nil || seen[name] {
						t.Errorf("%s: %q, twice or no name (%v)", path, name, err)
					}
					seen[name] = true
				}
			}
		}
		if len(seen) == before {
			t.Errorf("%s has no effects", path)
		}
	}
	return seen
}

// A knob either changes something, and a test has seen it, or says in one line
// that it does not (plugin: TestInertKnobsSaySo).
func TestEveryKnobIsObserved(t *testing.T) {
	seen := observed(t)
	for _, s := range All() {
		if seen[s.Name] == (s.Inert != "") {
			t.Errorf("%s: its effect is observed: %v; why it has none: %q", s.Name, seen[s.Name], s.Inert)
		}
		delete(seen, s.Name)
	}
	for name := range seen {
		t.Errorf("%s is observed, and no knob", name)
	}
}
