package meter

import (
	"errors"
	"testing"

	"weft/internal/build"
)

// Threads count while another reads, under the sanitizers.
func TestStress(t *testing.T) {
	for _, sanitizer := range []string{"thread", "address,undefined"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			err := build.Sanitized(sanitizer, t.TempDir(), "-I.", "stress/meter.c", "meter.c")
			if errors.Is(err, build.ErrNoSanitizer) {
				t.Skipf("this compiler has no runtime for -fsanitize=%s:\n%s", sanitizer, err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
