package proof

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestShims links compat's C with a core made of recorders and checks what
// each kind of shim and adapter makes of a call.
func TestShims(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(filepath.Join(root, "compat", "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("compat/*.c: %v, %d files", err, len(sources))
	}
	dir := t.TempDir()
	program, rest := filepath.Join(dir, "shims"), filepath.Join(dir, "rest.c")
	write(t, rest, unrecorded(t, root, "shims.c"))
	args := []string{
		"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
		"-I" + filepath.Join(root, "headers"), "-I" + filepath.Join(root, "plugin"),
		"-I" + filepath.Join(root, "transport/fastpath"), "-I" + filepath.Join(root, "guest"), "-I" + filepath.Join(root, "compat"),
		"-o", program, rest, filepath.Join(root, "gen/proof/testdata/shims.c"),
	}
	command(t, root, "gcc", append(args, sources...)...)
	out, err := exec.CommandContext(deadline(t, time.Minute), program).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

var (
	slowPrototype = regexp.MustCompile(`(?m)^\w+ (weft_\w+)\((.*)\);`)
	recorder      = regexp.MustCompile(`(?m)^int took_(\w+)\((.*)\) \{`)
	lastWord      = regexp.MustCompile(`\w+$`)
)

// unrecorded defines the core's functions by the generated prototypes: one that
// has a recorder hands it the parameters that it knows, any other ends the
// program.
func unrecorded(t *testing.T, root, driver string) string {
	t.Helper()
	recorders := read(t, filepath.Join(root, "gen/proof/testdata", driver))
	took := map[string]string{}
	for _, m := range recorder.FindAllStringSubmatch(recorders, -1) {
		took["weft_"+m[1]] = m[2]
	}
	var c strings.Builder
	c.WriteString("#include \"compat.h\"\n")
	for _, m := range slowPrototype.FindAllStringSubmatch(read(t, filepath.Join(root, "plugin/zz_slow.h")), -1) {
		name, params := m[1], m[2]
		switch known, is := took[name]; {
		case is:
			var args []string
			for _, q := range strings.Split(known, ", ") {
				args = append(args, lastWord.FindString(q))
			}
			as := strings.Replace(name, "weft_", "took_", 1)
			fmt.Fprintf(&c, "int %s(%s);\nint %s(%s) { return %s(%s); }\n", as, known, name, params, as, strings.Join(args, ", "))
			delete(took, name)
		case !strings.Contains(recorders, " "+name+"("):
			fmt.Fprintf(&c, "int %s(%s) { __builtin_trap(); }\n", name, params)
		}
	}
	for name := range took {
		t.Errorf("testdata/%s records %s, which plugin/zz_slow.h does not declare", driver, name)
	}
	return c.String()
}
