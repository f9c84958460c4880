package proof

import (
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
	write(t, rest, unrecorded(t, root))
	args := []string{
		"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
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

var slowPrototype = regexp.MustCompile(`(?m)^\w+ (weft_\w+)\(`)

// unrecorded defines the core's other functions: calling one ends the program.
func unrecorded(t *testing.T, root string) string {
	t.Helper()
	recorders := read(t, filepath.Join(root, "gen/proof/testdata/shims.c"))
	var c strings.Builder
	for _, m := range slowPrototype.FindAllStringSubmatch(read(t, filepath.Join(root, "plugin/zz_slow.h")), -1) {
		if !strings.Contains(recorders, " "+m[1]+"(") {
			c.WriteString("void " + m[1] + "(void) { __builtin_trap(); }\n")
		}
	}
	return c.String()
}
