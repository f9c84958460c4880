package fastpath_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"weft/internal/build"
)

// The C of the fast path runs in stand-alone drivers under the sanitizers, briefly; `make stress` runs them longer.
func TestStress(t *testing.T) {
	sources, err := filepath.Glob("*.c")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "../tcp/stream.c", "../tcp/coalesce.c", "../tcp/frames.c", "../tcp/zerocopy.c", "../record/record.c", "../meter/meter.c")
	sim, err := filepath.Glob("../../tools/simverbs/*.c")
	if err != nil {
		t.Fatal(err)
	}
	sim = slices.DeleteFunc(sim, func(f string) bool { return filepath.Base(f) == "mlx5.c" })
	for _, sanitizer := range []string{"thread", "address,undefined"} {
		for _, driver := range []string{"stress", "hostile", "lanes", "gates", "inorder"} {
			t.Run(driver+" "+sanitizer, func(t *testing.T) {
				t.Parallel()
				args := append([]string{"-I../../headers", "-I../record", "-I../meter", "stress/" + driver + ".c"}, sources...)
				if driver == "lanes" { // on queue pairs of the simulated libibverbs
					args = append(append(args, "-Wno-unused-parameter", "-Wno-tsan"), sim...)
				}
				err := build.Sanitized(sanitizer, t.TempDir(), args...)
				if errors.Is(err, build.ErrNoSanitizer) {
					t.Skipf("this compiler has no runtime for -fsanitize=%s:\n%s", sanitizer, err)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
