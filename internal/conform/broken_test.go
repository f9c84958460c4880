package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

const testdata = "tools/host/testdata"

func hostProgram(t *testing.T) string {
	t.Helper()
	path, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// plugin compiles a C plugin of testdata.
func plugin(t *testing.T, source string) string {
	t.Helper()
	path, err := build.Plugin(source, "-O0", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// failed runs conform and returns the ids that failed.
func failed(t *testing.T, o Options) map[string]string {
	t.Helper()
	all, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{}
	for _, o := range all {
		if !o.OK() {
			bad[o.Rule.ID] = o.Label() + ": " + o.Fail
		}
	}
	return bad
}

// condition is what a further run of the suite changes for the library, or empty.
func condition() string {
	for _, name := range []string{"WEFT_HOST_FIRST", build.DistEnv, "GODEBUG"} {
		if v := os.Getenv(name); v != "" {
			return name + "=" + v
		}
	}
	return ""
}

// fewTables says whether two tables of a family stand for all: the adapters are C, and of all conditions only a sanitizer's build
// concerns these.
func fewTables() bool {
	return testing.Short() || (condition() != "" && os.Getenv(build.DistEnv) == "")
}

// judgeOnce skips tests of the judge where the suite runs again: the C plugins would do the same again.
func judgeOnce(t *testing.T) {
	t.Helper()
	if c := condition(); c != "" {
		t.Skipf("%s concerns the library, not these plugins", c)
	}
}

// TestGood requires the base of all broken plugins to keep every rule on every table.
func TestGood(t *testing.T) {
	judgeOnce(t)
	for _, source := range []string{"good.c", "good_tuner.c"} {
		if bad := failed(t, Options{Lib: plugin(t, testdata+"/"+source), Host: hostProgram(t)}); len(bad) > 0 {
			t.Errorf("the good plugin %s breaks rules: %v", source, bad)
		}
	}
}

// TestGoodCollNet does so of the good collNet, whose net is that of TestGood.
func TestGoodCollNet(t *testing.T) {
	judgeOnce(t)
	o := Options{Lib: plugin(t, testdata+"/coll.c"), Host: hostProgram(t), Strict: true}
	first, _ := host.FamilyColl.Versions()
	for v := first; v <= host.FamilyColl.Witness(); v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && v != first && v != host.FamilyColl.Witness() {
				t.Skip("only the first and the last with -short")
			}
			for _, x := range Judge(o, host.FamilyColl, v) {
				if !x.OK() || x.Skip != "" && x.Skip != noVDevice {
					t.Errorf("%s: %s%s", x.Label(), x.Fail, x.Skip)
				}
			}
		})
	}
}

// TestBroken requires of each broken plugin that the rule that it is named after
// fails, and no other; and that there is one for each rule.
func TestBroken(t *testing.T) {
	judgeOnce(t)
	hostBin := hostProgram(t)
	var seen sync.Map
	t.Run("plugins", func(t *testing.T) {
		files, err := filepath.Glob("../../" + testdata + "/broken/*.c")
		if err != nil || len(files) == 0 {
			t.Fatal("no broken plugins", err)
		}
		for _, f := range files {
			id := strings.TrimSuffix(filepath.Base(f), ".c")
			seen.Store(id, true)
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				slow := id == "size.gib"
				if slow && os.Getenv("WEFT_TEST_SLOW") == "" {
					t.Skip("1 GiB in one message: set WEFT_TEST_SLOW=1")
				}
				var rules []string
				if strings.HasPrefix(id, "coll.") { // its net is the good one
					rules = []string{"coll."}
				}
				bad := failed(t, Options{Lib: plugin(t, filepath.Join(testdata, "broken", filepath.Base(f))), Host: hostBin, Rules: rules, Slow: slow, Patience: 6 * time.Second})
				if _, ok := bad[id]; !ok {
					t.Errorf("%s is kept by a plugin made to break it", id)
				}
				delete(bad, id)
				for _, what := range bad {
					t.Errorf("also found: %s", what)
				}
			})
		}
	})
	for _, r := range AllRules() {
		if _, ok := seen.Load(r.ID); !ok {
			t.Errorf("no plugin in %s/broken breaks %s", testdata, r.ID)
		}
	}
}
