package abidiff

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown is a call in docs/abi.md, and what it writes.
var shown = regexp.MustCompile("(?ms)^```\n\\$ weft abi([^\n]*)\n(.*?)^```$")

// What docs/abi.md shows is what the calls write, in a folder that has the headers
// of this build for versions 9 and 10 of net, one as old and one as new.
func TestDocs(t *testing.T) {
	path, err := filepath.Abs("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	ours(t, "old")
	ours(t, "new")
	calls := 0
	want := shown.ReplaceAllStringFunc(string(have), func(block string) string {
		calls++
		m := shown.FindStringSubmatch(block)
		form, args := "text", []string{}
		for _, a := range strings.Fields(m[1]) {
			switch a {
			case "--table":
				form = "table"
			case "--json":
				form = "json"
			default:
				args = append(args, a)
			}
		}
		return "```\n$ weft abi" + m[1] + "\n" + written(t, ask(t, args...), form) + "```"
	})
	if calls < 5 {
		t.Errorf("docs/abi.md shows %d calls", calls)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(want, string(have)); d != "" {
		t.Errorf("docs/abi.md is stale; go test ./internal/abidiff -update (-want +got):\n%s", d)
	}
}
