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

// ours are the tests and the rules of the contract, each behind its package.
func ours(t *testing.T) map[string]bool {
	t.Helper()
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
	return have
}

// namesIn are the tests and rules of the contract that a row of a page names.
func namesIn(row string) (names []string) {
	for _, m := range peerTest.FindAllStringSubmatch(row, -1) {
		names = append(names, m[1]+" "+m[2])
	}
	for _, m := range peerRule.FindAllStringSubmatch(row, -1) {
		names = append(names, "internal/conform "+m[1])
	}
	return names
}

// rows are those of a page's tables, but for their heads.
func rows(t *testing.T, page, head string) (all []string) {
	t.Helper()
	for l := range strings.Lines(read(t, page)) {
		if strings.HasPrefix(l, "|") && !strings.HasPrefix(l, "|---") && !strings.HasPrefix(l, "| "+head) {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rows", page)
	}
	return all
}

// TestCasesOfPeersExist requires of the table of RCCL's tests that each row names a test or a rule of ours, and that each is there.
func TestCasesOfPeersExist(t *testing.T) {
	have := ours(t)
	for _, l := range rows(t, "docs/rccl-tests.md", "RCCL") {
		names := namesIn(l)
		if len(names) == 0 {
			t.Errorf("no test of ours in the row %s", l)
		}
		for _, n := range names {
			if !have[n] {
				t.Errorf("docs/rccl-tests.md names %s, which does not exist", n)
			}
		}
	}
}

// TestPainsAreAnswered requires of each row of what users suffer from a rule of the doctor or a test of ours, all of which are there,
// or the word that there is neither.
func TestPainsAreAnswered(t *testing.T) {
	have, doctor := ours(t), read(t, "docs/doctor.md")
	code := regexp.MustCompile(`WEFT-\d{3}`)
	for _, l := range rows(t, "docs/pains.md", "what happens") {
		names, codes := namesIn(l), code.FindAllString(l, -1)
		if len(names)+len(codes) == 0 && !strings.Contains(l, "neither") {
			t.Errorf("nothing is said to %s", l)
		}
		for _, n := range names {
			if !have[n] {
				t.Errorf("docs/pains.md names %s, which does not exist", n)
			}
		}
		for _, c := range codes {
			if !strings.Contains(doctor, "### "+c+"\n") {
				t.Errorf("docs/pains.md names %s, which is no rule of the doctor", c)
			}
		}
	}
}
