package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// alias is the name of package pause in a rewritten file; sources have variables named pause.
const alias = "zzPause"

// insertion is text that goes before an offset of a file. Nothing is taken away, and nothing has a newline: lines keep their numbers.
type insertion struct {
	at   int
	text string
}

// rewriter collects what goes into a file.
type rewriter struct {
	base int // of the file's positions
	all  []insertion
}

// rewrite returns the file with pauses in it; nil when there is no place for one.
//
//	go f(x)             go Late(f)(x)
//	mu.Lock()           Point(); mu.Lock()
//	mu.Unlock()         mu.Unlock(); Point()
//	defer mu.Unlock()   defer After(mu.Unlock)()
//	c <- x              Point(); c <- x
//	close(c)            Point(); close(c)
//	select {            Point(); select {
func rewrite(name string, text []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	r := &rewriter{base: set.File(file.Pos()).Base()}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			r.wrap(n.Call.Fun, "Late")
		case *ast.DeferStmt:
			if m := method(n.Call); m == "Unlock" || m == "RUnlock" {
				r.wrap(n.Call.Fun, "After")
			}
		// Only in a list there is room for a second statement.
		case *ast.BlockStmt:
			r.list(n.List)
		case *ast.CaseClause:
			r.list(n.Body)
		case *ast.CommClause:
			r.list(n.Body)
		}
		return true
	})
	if len(r.all) == 0 {
		return nil, nil
	}
	r.put(file.Name.End(), `; import `+alias+` "weft/internal/delays/pause"`)
	return r.apply(text), nil
}

func (r *rewriter) put(at token.Pos, text string) {
	r.all = append(r.all, insertion{int(at) - r.base, text})
}

func (r *rewriter) wrap(f ast.Expr, with string) {
	r.put(f.Pos(), alias+"."+with+"(")
	r.put(f.End(), ")")
}

func (r *rewriter) list(list []ast.Stmt) {
	for _, s := range list {
		begin := s.Pos()
		for { // before a label, or it would no longer be that of the loop or select
			l, ok := s.(*ast.LabeledStmt)
			if !ok {
				break
			}
			s = l.Stmt
		}
		before, after := pauses(s)
		if before {
			r.put(begin, alias+".Point(); ")
		}
		if after {
			r.put(s.End(), "; "+alias+".Point()")
		}
	}
}

// pauses says whether there is one before a statement, and one after it.
func pauses(s ast.Stmt) (before, after bool) {
	switch s := s.(type) {
	case *ast.SendStmt, *ast.SelectStmt:
		return true, false
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false, false
		}
		if f, ok := call.Fun.(*ast.Ident); ok {
			return f.Name == "close", false
		}
		switch method(call) {
		case "Lock", "RLock":
			return true, false
		case "Unlock", "RUnlock":
			return false, true
		}
	}
	return false, false
}

// method is the name of the method that is called without arguments, if the call is of that kind.
func method(call *ast.CallExpr) string {
	if f, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) == 0 {
		return f.Sel.Name
	}
	return ""
}

func (r *rewriter) apply(text []byte) []byte {
	slices.SortStableFunc(r.all, func(a, b insertion) int { return a.at - b.at })
	var out strings.Builder
	done := 0
	for _, i := range r.all {
		out.Write(text[done:i.at])
		out.WriteString(i.text)
		done = i.at
	}
	out.Write(text[done:])
	return []byte(out.String())
}
