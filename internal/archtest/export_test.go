package archtest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/build"
	"weft/internal/link"
)

// released are the tables of each family that were released, and so never change. The list only grows, and only here, by hand.
var released = []struct {
	symbol      string
	first, last int
}{
	{"ncclNetPlugin", 2, 12},
	{"ncclCollNetPlugin", 3, 12},
	{"ncclProfiler", 1, 7},
	{"ncclTunerPlugin", 2, 6},
}

const toRelease = `%s is exported and not released. A released table keeps its layout, its NULL slots and its functions for good, so first decide what is
listed at the end of VERSIONING.md; then write its version as the last of its family into released, in internal/archtest/export_test.go.%s`

// derived is a line of VERSIONING.md for review: family, first and last version, and what was decided.
var derived = regexp.MustCompile(`(?m)^- (net|collNet|profiler|tuner) v(\d+)(?:\.\.v(\d+))? .*$`)

// undecided lists what a text like VERSIONING.md has for review that an exported table brings: of its own version, and of
// those up to the one before it, which lack what is new in it.
func undecided(t *testing.T, versioning, export string) (lines []string) {
	t.Helper()
	_, list, found := strings.Cut(versioning, "### Derived without a rule, for review")
	symbol, number, _ := strings.Cut(export, "_v")
	version, err := strconv.Atoi(number)
	family := map[string]string{"ncclNetPlugin": "net", "ncclCollNetPlugin": "collNet", "ncclProfiler": "profiler", "ncclTunerPlugin": "tuner"}[symbol]
	if !found || family == "" || err != nil {
		t.Fatalf("%s: VERSIONING.md has no list of what is for review, or there is a new family", export)
	}
	for _, l := range derived.FindAllStringSubmatch(list, -1) {
		first, _ := strconv.Atoi(l[2])
		last, err := strconv.Atoi(l[3])
		if err != nil {
			last = first
		}
		lacks := version == last+1 && strings.Contains(l[0], ": has no ")
		if l[1] == family && first <= version && (version <= last || lacks) {
			lines = append(lines, l[0])
		}
	}
	return lines
}

func TestDecisionsThatATableBrings(t *testing.T) {
	const text = `
- net v9 isend: before the list.
### Derived without a rule, for review

- net v2..v6 init: has no ctx; the core gets NULL.
- net v2..v8 isend: has no hints; the core gets 0.
- net v8 iflush: a decision of the one before.
- net v9 isend: has a new hints.
- net v9..v10 test: a decision of both.
- collNet v3..v8 init: has no name; the core gets NULL.
- profiler v4 startEvent: member kernelPhase counts.
`
	for export, want := range map[string][]string{
		"ncclNetPlugin_v9":     {"net v2..v8 isend", "net v9 isend", "net v9..v10 test"},
		"ncclNetPlugin_v10":    {"net v9..v10 test"},
		"ncclCollNetPlugin_v9": {"collNet v3..v8 init"},
		"ncclProfiler_v4":      {"profiler v4 startEvent"},
		"ncclProfiler_v3":      nil,
	} {
		var got []string
		for _, l := range undecided(t, text, export) {
			what, _, _ := strings.Cut(strings.TrimPrefix(l, "- "), ":")
			got = append(got, what)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", export, diff)
		}
	}
}

// onlyReleased requires the released tables and no others.
func onlyReleased(t *testing.T, exports []string) {
	t.Helper()
	var all []string
	for _, family := range released {
		for v := family.first; v <= family.last; v++ {
			all = append(all, fmt.Sprintf("%s_v%d", family.symbol, v))
		}
	}
	for _, name := range all {
		if !slices.Contains(exports, name) {
			t.Errorf("%s was released and is exported no more: hosts that look it up would lose their network", name)
		}
	}
	for _, name := range exports {
		if !slices.Contains(all, name) {
			t.Errorf(toRelease, name, strings.Join(append([]string{""}, undecided(t, read(t, "VERSIONING.md"), name)...), "\n"))
		}
	}
}

func TestVersionScriptListsTheReleasedTables(t *testing.T) {
	onlyReleased(t, link.ScriptExports([]byte(read(t, "lib/zz_exports.map"))))
}

func TestLibraryExportsTheReleasedTablesAndIsPortable(t *testing.T) {
	if os.Getenv(build.DistEnv) != "" {
		t.Skipf("%s names a library that is not the released one", build.DistEnv)
	}
	path, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	facts, err := link.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	onlyReleased(t, facts.Exports)
	if diff := cmp.Diff([]string(nil), facts.Portable()); diff != "" {
		t.Error(diff)
	}
}
