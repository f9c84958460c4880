// Package skips is the list of tests that may be left out, each with the reason: internal/check counts a skip that is not on it
// as a failure, and internal/archtest compares it with what the tests say.
package skips

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Skip is a line of the list.
type Skip struct {
	Package string // below the module's root
	Test    string // a pattern of path.Match for the top-level test
	Reason  string // the format of the test's call of Skip
}

//go:embed skips.txt
var text string

// List is the list of this tree.
func List() ([]Skip, error) { return Parse(text) }

// Parse reads lines of PACKAGE TEST REASON; # begins a comment.
func Parse(text string) (list []Skip, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		if len(f) < 3 {
			return nil, fmt.Errorf("skips.txt: %q: want PACKAGE TEST REASON", line)
		}
		if _, err := path.Match(f[1], ""); err != nil {
			return nil, fmt.Errorf("skips.txt: %q: %w", line, err)
		}
		list = append(list, Skip{f[0], f[1], f[2]})
	}
	return list, nil
}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-z]|\\n`)

// Allows says whether the test of a package may be left out, having said so.
func (s Skip) Allows(pkg, test, said string) bool {
	top, _, _ := strings.Cut(test, "/")
	if ok, _ := path.Match(s.Test, top); !ok || s.Package != pkg {
		return false
	}
	for _, part := range verb.Split(s.Reason, -1) { // what stands between the values
		_, after, found := strings.Cut(said, part)
		if !found {
			return false
		}
		said = after
	}
	return true
}
