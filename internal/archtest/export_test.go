package archtest

import (
	"fmt"
	"os"
	"slices"
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
}

const toRelease = `%s is exported and not released. A released table keeps its layout, its NULL slots and its functions for good, so first decide what is
listed at the end of VERSIONING.md; then write its version as the last of its family into released, in internal/archtest/export_test.go.%s`

// undecided lists what VERSIONING.md says for review of the version of an exported table.
func undecided(t *testing.T, export string) string {
	t.Helper()
	_, list, found := strings.Cut(read(t, "VERSIONING.md"), "### Derived without a rule, for review")
	symbol, version, _ := strings.Cut(export, "_")
	family := map[string]string{"ncclNetPlugin": "net", "ncclCollNetPlugin": "collNet", "ncclProfiler": "profiler"}[symbol]
	if !found || family == "" {
		t.Fatalf("%s: VERSIONING.md has no list of what is for review, or there is a new family", export)
	}
	var text string
	for _, line := range strings.Split(list, "\n") {
		if strings.HasPrefix(line, "- "+family+" "+version+" ") {
			text += "\n" + line
		}
	}
	return text
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
			t.Errorf(toRelease, name, undecided(t, name))
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
