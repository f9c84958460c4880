package launch

import (
	"fmt"
	"strings"
)

// firstHost is the first machine of Slurm's list: node1 of "node1,node3", gpu07 of "gpu[07-12,20],login", a1b2 of "a[1-2]b[2-3]".
func firstHost(list string) (string, error) {
	var name strings.Builder
	rest := list
	for rest != "" {
		i := strings.IndexAny(rest, ",[]")
		if i < 0 {
			i = len(rest)
		}
		name.WriteString(rest[:i])
		if rest = rest[i:]; rest == "" || rest[0] == ',' {
			break
		}
		inside, after, closed := strings.Cut(rest[1:], "]")
		first := inside
		if j := strings.IndexAny(inside, "-,"); j >= 0 {
			first = inside[:j]
		}
		if rest[0] != '[' || !closed || first == "" || strings.Trim(first, "0123456789") != "" {
			return "", fmt.Errorf("%q is no list of nodes", list)
		}
		name.WriteString(first)
		rest = after
	}
	if name.Len() == 0 {
		return "", fmt.Errorf("%q names no node", list)
	}
	return name.String(), nil
}
