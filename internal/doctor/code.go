package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

const codePrefix = "WEFT-"

// codeNumber is the number of WEFT-017.
func codeNumber(code string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(code, codePrefix))
	if err != nil {
		return -1
	}
	return n
}

func compareCodes(a, b string) int { return cmp.Compare(codeNumber(a), codeNumber(b)) }

// Find is the rule of a code, as a user may write it: WEFT-017, weft-17, 17.
func Find(code string) (Rule, error) {
	text := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(code)), codePrefix)
	n, err := strconv.Atoi(text)
	if err == nil {
		for _, r := range Rules() {
			if codeNumber(r.Code) == n {
				return r, nil
			}
		}
	}
	all := Rules()
	return Rule{}, fmt.Errorf("there is no rule %q: codes are %s to %s, listed by weft doctor --rules and in docs/doctor.md", code, all[0].Code, all[len(all)-1].Code)
}
