package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the graph of the packages into ARCHITECTURE.md")

const (
	graphBegins = "<!-- packages: go test ./internal/archtest -run TestGraphOfPackages -update -->\n```\n"
	graphEnds   = "```\n"
)

// ARCHITECTURE.md shows what each package of the library imports of the others. What is left out of a line is imported by
// something that stands there.
func TestGraphOfPackages(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, g := range sources(t) {
		if level, _ := layer(g.pkg); level < 0 || g.test {
			continue
		}
		if imports[g.pkg] == nil {
			imports[g.pkg] = map[string]bool{}
		}
		for _, imp := range g.imports {
			dep, ours := strings.CutPrefix(imp, "weft/")
			if to, _ := layer(dep); ours && to >= 0 && dep != g.pkg {
				imports[g.pkg][dep] = true
			}
		}
	}
	reaches := map[string]map[string]bool{}
	var reach func(pkg string) map[string]bool
	reach = func(pkg string) map[string]bool {
		if reaches[pkg] == nil {
			reaches[pkg] = map[string]bool{}
			for dep := range imports[pkg] {
				reaches[pkg][dep] = true
				maps.Copy(reaches[pkg], reach(dep))
			}
		}
		return reaches[pkg]
	}
	all := slices.Collect(maps.Keys(imports))
	slices.SortFunc(all, func(a, b string) int { // the highest first
		la, _ := layer(a)
		lb, _ := layer(b)
		if la != lb {
			return lb - la
		}
		return strings.Compare(a, b)
	})
	var graph strings.Builder
	for _, pkg := range all {
		var direct []string
		for dep := range imports[pkg] {
			through := func(other string) bool { return other != dep && reach(other)[dep] }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(imports[pkg])), through) {
				direct = append(direct, dep)
			}
		}
		slices.Sort(direct)
		graph.WriteString(strings.TrimSpace(fmt.Sprintf("%-22s %s", pkg, strings.Join(direct, "  "))) + "\n")
	}
	text := read(t, "ARCHITECTURE.md")
	head, rest, found := strings.Cut(text, graphBegins)
	old, tail, closed := strings.Cut(rest, graphEnds)
	if !found || !closed {
		t.Fatalf("ARCHITECTURE.md has no place for the graph:\n%s", graphBegins)
	}
	if old == graph.String() {
		return
	}
	if !*update {
		t.Fatalf("the graph in ARCHITECTURE.md is not that of the packages; run go test ./internal/archtest -run TestGraphOfPackages -update. They import:\n%s", &graph)
	}
	if err := os.WriteFile(filepath.Join(root, "ARCHITECTURE.md"), []byte(head+graphBegins+graph.String()+graphEnds+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
