package archtest

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weft/internal/skips"
)

// The reason must be a literal, so that it can be listed.
var skipCall = regexp.MustCompile(`\bt\.Skip(?:f|Now)?\(("(?:[^"\\]|\\.)*")?`)

// TestSkipsAreListed compares the list of tests that may be left out with what the tests say.
func TestSkipsAreListed(t *testing.T) {
	all, err := skips.List()
	if err != nil {
		t.Fatal(err)
	}
	type reason struct{ pkg, text string }
	listed, said := map[reason]bool{}, map[reason]bool{}
	for _, s := range all {
		listed[reason{s.Package, s.Reason}] = true
	}
	for _, f := range list(t) {
		if !strings.HasSuffix(f, "_test.go") || f == "internal/archtest/skip_test.go" {
			continue
		}
		for _, m := range skipCall.FindAllStringSubmatch(read(t, f), -1) {
			text, err := strconv.Unquote(m[1])
			if err != nil {
				t.Errorf("%s: %s...: say why with a literal", f, m[0])
				continue
			}
			r := reason{path.Dir(f), strings.ReplaceAll(text, "\n", `\n`)}
			said[r] = true
			if !listed[r] {
				t.Errorf("%s skips with %q, which is not in internal/skips/skips.txt", f, text)
			}
		}
	}
	for r := range listed {
		if !said[r] {
			t.Errorf("internal/skips/skips.txt has %s: %q, which no test there says", r.pkg, r.text)
		}
	}
}
