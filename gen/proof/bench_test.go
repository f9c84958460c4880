package proof

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/link"
)

// commands runs what a user would: data through the new net table, and the
// contract against it.
func commands(t *testing.T, root string, in *invention) {
	t.Helper()
	weft, lib := filepath.Join(root, "dist/bin/weft"), filepath.Join(root, "dist/lib/libnccl-net-weft.so")
	abi := fmt.Sprint(in.Net)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "--local", "--abi", abi, "--sizes", "8,64K,1M"}, "all data right: 1 table"},
		{[]string{"conform", "--strict", "--patience", "1m", "--abi", abi, "--rule", "table.,net.,props.,conn.,connect.,data.,group.,send.,finalize.", lib}, " 0 do not, 0 of care do not, 0 not judged"},
	} {
		cmd := exec.CommandContext(deadline(t, 20*time.Minute), weft, c.args...)
		out, err := cmd.CombinedOutput()
		for _, want := range []string{c.says, fmt.Sprintf("ncclNetPlugin_v%s is unwitnessed", abi), in.Function + " is not called"} {
			if err != nil || strings.Count(string(out), want) != 1 {
				t.Errorf("weft %s: %v, want %q once\n%s", strings.Join(c.args, " "), err, want, out)
			}
		}
	}
}

// named requires the newest tables where people and make read of them, which no Go test does.
func named(t *testing.T, root string, last *invention) {
	t.Helper()
	if want := fmt.Sprintf(" to v%d, profiler v1 to v%d, tuner v2 to v%d<!--", last.Net, last.Profiler, last.Tuner); !strings.Contains(read(t, filepath.Join(root, "README.md")), want) {
		t.Errorf("README.md does not say %q", want)
	}
	cmd := exec.CommandContext(deadline(t, time.Minute), "make", "-s", "--eval=newest: ; @echo $(ARM_TABLE)", "newest")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("net_v%d", last.Net) {
		t.Errorf("what stands for all tables on arm64: %v, %q", err, out)
	}
}

// promise makes the one edit by hand, after the test that asks for it has said
// where.
func promise(t *testing.T, root string, made []*invention) {
	t.Helper()
	const file = "internal/archtest/export_test.go"
	cmd := exec.CommandContext(deadline(t, 20*time.Minute), "go", "test", "-vet=off", "-run", "TestVersionScriptListsTheReleasedTables", "./internal/archtest")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	last := made[len(made)-1]
	for _, want := range []string{fmt.Sprintf("ncclNetPlugin_v%d is exported and not released", last.Net), file} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("a new table is exported: %v, want %q\n%s", err, want, out)
		}
	}
	text := read(t, filepath.Join(root, file))
	for symbol, v := range map[string]int{"ncclNetPlugin": last.Net, "ncclCollNetPlugin": last.Net, "ncclProfiler": last.Profiler, "ncclTunerPlugin": last.Tuner} {
		line := regexp.MustCompile(`(\{"` + symbol + `", \d+, )\d+(\})`)
		if !line.MatchString(text) {
			t.Fatalf("%s has no line for %s", file, symbol)
		}
		text = line.ReplaceAllString(text, fmt.Sprintf("${1}%d${2}", v))
	}
	write(t, filepath.Join(root, file), text)
}

// bench runs the tests that depend on which versions there are, or all, and
// returns the library that they have built. What judges the tests themselves, and
// what takes no table, is the same in the tree that this one is a copy of.
func bench(t *testing.T, root string, last *invention) string {
	t.Helper()
	runs := [][]string{
		{"./gen/parse", "./headers", "./collnet", "./profiler", "./tuner"},
		{"-skip", "TestExportsAreNotForTests", "./internal/archtest"}, // it compiles every test, and knows no versions
		{"-run", "TestUpToDate|TestShims|TestNulls", "./gen", "./gen/proof"},
		{"-run", "TestOtherFamilies", "./internal/host"},
		{"-run", fmt.Sprintf("^TestLibrary(OverRDMA)?$/_v(%d|%d|%d)$", last.Net, last.Profiler, last.Tuner), "./internal/conform"},
		{"-run", fmt.Sprintf("^TestProfile(OfMessages)?$/^v(%d|%d)", last.Net, last.Profiler), "./internal/conform"},
		{"-run", fmt.Sprintf("^Test(Most)?FusedDevices$/^v%d$", last.Net), "./internal/faults"},
		{"./plugin", "./internal/trace/..."},
		{"-run", fmt.Sprintf("^TestTableCalls$/^v%d", last.Net), "./internal/fuzz"},
		{"-run", "TestRunEveryTable|TestConformCommand|TestRunUsage", "./tools/weft"},
	}
	if *whole {
		runs = [][]string{{"-timeout", "40m", "./..."}}
	}
	for _, args := range runs {
		begin := time.Now()
		command(t, root, "go", append([]string{"test", "-short", "-vet=off"}, args...)...)
		t.Logf("%v: %v", args, time.Since(begin).Round(time.Second))
	}
	built, err := filepath.Glob(filepath.Join(root, ".cache/build", link.Name+"-*", link.Name))
	if err != nil || len(built) != 1 {
		t.Fatalf("the library of the tests: %v, %q", err, built)
	}
	return built[0]
}
