package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The codes that the library's log lines end in are those of rules.
func TestCodesOfTheLog(t *testing.T) {
	code, seen := regexp.MustCompile(`WEFT-\d+`), map[string]bool{}
	for _, dir := range []string{"transport", "plugin", "collnet", "tuner"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, c := range code.FindAllString(string(b), -1) {
				if _, missing := Find(c); missing != nil {
					t.Errorf("%s: %v", path, missing)
				}
				seen[c] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d rules are named", len(seen))
	}
}
