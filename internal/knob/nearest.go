package knob

import (
	"fmt"
	"slices"
	"strings"
)

// typo is how many edits a name of NCCL's may be from one of the table to be told
// as a mistake: most of NCCL's names are not ours to know. Two letters that
// changed places are two.
const typo = 2

// theirs are names of NCCL's that are as near as that to one of the table.
var theirs = []string{"NCCL_NVB_DISABLE"}

// unknown returns a line for every WEFT_ name that the table lacks, and for every
// NCCL_ name that nearly is one of the table, with the name that was probably meant.
func unknown(environ []string) []string {
	var lines []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case known(name):
		case strings.HasPrefix(name, "WEFT_"):
			lines = append(lines, fmt.Sprintf("%s is not a knob of weft and is ignored; did you mean %s?", Printable(name), Nearest(name)))
		case strings.HasPrefix(name, "NCCL_") && !slices.Contains(theirs, name) && distance(name, Nearest(name)) <= typo:
			lines = append(lines, fmt.Sprintf("%s is not a variable that weft or NCCL's networks read; did you mean %s?", Printable(name), Nearest(name)))
		}
	}
	return lines
}

// elsewhere are prefixes of names that weft's command, its simulated libibverbs
// and its tests read. Their processes hand them down to hosts, which must not be
// warned of them.
var elsewhere = []string{"WEFT_HOST_", "WEFT_LAB_", "WEFT_RESULTS", "WEFT_RUN_", "WEFT_SIMVERBS", "WEFT_TEST_"}

func known(name string) bool {
	_, ours := Find(name)
	return ours || Elsewhere(name)
}

// Elsewhere reports a name that weft's command, its simulated libibverbs or its tests read.
func Elsewhere(name string) bool {
	return slices.ContainsFunc(elsewhere, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Find is the knob of that name, or of RCCL's other name for it.
func Find(name string) (id ID, ok bool) {
	at := slices.IndexFunc(table[:], func(s Spec) bool { return name != "" && (s.Name == name || s.Also == name) })
	return ID(max(at, 0)), at >= 0
}

// Nearest is the table's name with the smallest edit distance to name; of
// several, the first.
func Nearest(name string) string {
	const longest = 64 // no knob is near a longer name, and the distance costs its square
	if len(name) > longest {
		name = name[:longest]
	}
	best, least := "", int(^uint(0)>>1)
	for _, s := range table {
		if d := distance(name, s.Name); d < least {
			best, least = s.Name, d
		}
	}
	return best
}

// distance is Levenshtein's: single insertions, deletions and replacements.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
