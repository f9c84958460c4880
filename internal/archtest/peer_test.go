package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	peerTest = regexp.MustCompile("`([a-z/]+) (Test[A-Za-z]+)`")
	peerRule = regexp.MustCompile("`conform ([a-z0-9.]+)`")
)

// TestCasesOfPeersExist requires of the table of RCCL's tests that each row names a test or a rule of ours, and that each is there.
func TestCasesOfPeersExist(t *testing.T) {
	have := map[string]bool{}
	testDecl, ruleDecl := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`), regexp.MustCompile(`\{ID: "([a-z0-9.]+)"`)
	for _, f := range list(t) {
		decl := ruleDecl
		if strings.HasSuffix(f, "_test.go") {
			decl = testDecl
		} else if path.Dir(f) != "internal/conform" {
			continue
		}
		for _, m := range decl.FindAllStringSubmatch(read(t, f), -1) {
			have[path.Dir(f)+" "+m[1]] = true
		}
	}
	rows := 0
	for l := range strings.Lines(read(t, "docs/rccl-tests.md")) {
		if !strings.HasPrefix(l, "|") || strings.HasPrefix(l, "|---") || strings.HasPrefix(l, "| RCCL") {
			continue
		}
		rows++
		var names []string
		for _, m := range peerTest.FindAllStringSubmatch(l, -1) {
			names = append(names, m[1]+" "+m[2])
		}
		for _, m := range peerRule.FindAllStringSubmatch(l, -1) {
			names = append(names, "internal/conform "+m[1])
		}
		if len(names) == 0 {
			t.Errorf("no test of ours in the row %s", l)
		}
		for _, n := range names {
			if !have[n] {
				t.Errorf("docs/rccl-tests.md names %s, which does not exist", n)
			}
		}
	}
	if rows == 0 {
		t.Error("docs/rccl-tests.md has no rows")
	}
}
