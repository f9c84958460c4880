package fastpath_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The C of the fast path runs in stand-alone drivers under the sanitizers, briefly; `make stress` runs them longer.
func TestStress(t *testing.T) {
	sources, err := filepath.Glob("*.c")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "../tcp/stream.c", "../tcp/frames.c")
	sim, err := filepath.Glob("../../tools/simverbs/*.c")
	if err != nil {
		t.Fatal(err)
	}
	sim = slices.DeleteFunc(sim, func(f string) bool { return filepath.Base(f) == "mlx5.c" })
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	for _, sanitizer := range []string{"thread", "address,undefined"} {
		for _, driver := range []string{"stress", "hostile", "lanes", "gates", "inorder"} {
			t.Run(driver+" "+sanitizer, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				program := filepath.Join(t.TempDir(), driver)
				args := []string{"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-fvisibility=hidden", "-I../../headers",
					"-fsanitize=" + sanitizer, "-fno-sanitize-recover=all", "-o", program, "stress/" + driver + ".c"}
				args = append(args, sources...)
				if driver == "lanes" { // on queue pairs of the simulated libibverbs
					args = append(append(args, "-Wno-unused-parameter", "-Wno-tsan"), sim...)
				}
				out, err := exec.CommandContext(ctx, cc, append(args, "-lpthread")...).CombinedOutput()
				if err != nil && strings.Contains(string(out), "cannot find") {
					t.Skipf("this compiler has no runtime for -fsanitize=%s:\n%s", sanitizer, out)
				}
				if err != nil || len(out) > 0 {
					t.Fatalf("compile: %v\n%s", err, out)
				}
				run := exec.CommandContext(ctx, program, "1", "2")
				run.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(program))
				if out, err := run.CombinedOutput(); err != nil {
					t.Fatalf("run: %v\n%s", err, out)
				}
			})
		}
	}
}
