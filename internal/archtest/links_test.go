package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkTo  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are what links may name in a document: its headings, as GitHub and Hugo make anchors of them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinks requires that every link of a document within the repository leads to a file, and to a heading where it names one.
func TestLinks(t *testing.T) {
	links := 0
	for _, f := range list(t) {
		if path.Ext(f) != ".md" || testdata(f) {
			continue
		}
		for _, m := range linkTo.FindAllStringSubmatch(code.ReplaceAllString(read(t, f), ""), -1) {
			to, anchor, named := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // elsewhere
			}
			links++
			target := f
			if to != "" {
				target = path.Join(path.Dir(f), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: the link %s leads to no file", f, m[1])
			} else if named && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: the link %s leads to no heading of %s", f, m[1], target)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links", links)
	}
}
