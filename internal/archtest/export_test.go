package archtest

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/build"
	"weft/internal/link"
)

// released lists the tables that the library exports. It only grows: what was released once is immutable.
func released() []string {
	var names []string
	for _, family := range []struct {
		symbol      string
		first, last int
	}{{"ncclNetPlugin", 2, 12}, {"ncclCollNetPlugin", 3, 12}, {"ncclProfiler", 1, 6}} {
		for v := family.first; v <= family.last; v++ {
			names = append(names, fmt.Sprintf("%s_v%d", family.symbol, v))
		}
	}
	slices.Sort(names)
	return names
}

func TestVersionScriptListsTheReleasedTables(t *testing.T) {
	if diff := cmp.Diff(released(), link.ScriptExports([]byte(read(t, "lib/zz_exports.map")))); diff != "" {
		t.Error(diff)
	}
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
	if diff := cmp.Diff(released(), facts.Exports); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string(nil), facts.Portable()); diff != "" {
		t.Error(diff)
	}
}
