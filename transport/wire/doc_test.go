package wire

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// docs/wire.md has every message with its number, and no other.
func TestDocNamesMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[Kind]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| ([a-z ]+) \| (?:all|comm|control|further stream)`).FindAllStringSubmatch(string(page), -1) {
		n, _ := strconv.Atoi(m[1])
		named[Kind(n)] = m[2]
	}
	for k := range Kind(64) {
		known := k.String() != "kind "+strconv.Itoa(int(k))
		if has := named[k]; known && has != k.String() || !known && has != "" {
			t.Errorf("kind %d is %q, and %q in the page", k, k.String(), has)
		}
	}
}
