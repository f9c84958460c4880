package ifname

import (
	"strings"
	"testing"
)

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"", "^", "=", "^=", "=^eth0", "eth0:1:2:3,^ib", ",,:,a", "^docker,lo,virbr", strings.Repeat("a,", 40)} {
		f.Add(s, "eth0")
	}
	f.Fuzz(func(t *testing.T, list, name string) {
		if strings.ContainsRune(list+name, 0) || len(list) > 1000 {
			return // no C string
		}
		if got, want := parseFilter(list).takes(name), byHand(list, name); got != want {
			t.Errorf("%q takes %q: %v, want %v", list, name, got, want)
		}
	})
}

// byHand walks the text once, character by character, as the grammar is told:
// another way to the same answer.
func byHand(list, name string) bool {
	i := 0
	mark := func(c byte) bool {
		if i < len(list) && list[i] == c {
			i++
			return true
		}
		return false
	}
	not := mark('^')
	exact := mark('=')
	entries, hit := 0, false
	for i <= len(list) && entries < 16 {
		start := i
		for i < len(list) && list[i] != ',' && list[i] != ':' {
			i++
		}
		word := list[start:i]
		for i < len(list) && list[i] != ',' {
			i++
		}
		i++
		if word == "" {
			continue
		}
		entries++
		if exact && name == word || !exact && len(name) >= len(word) && name[:len(word)] == word {
			hit = true
		}
	}
	return (entries == 0 || hit) != not
}
