package plugin

import (
	"errors"
	"testing"

	"weft/internal/build"
)

// TestStressOfChain has threads tell chained profilers of events, under the sanitizers.
func TestStressOfChain(t *testing.T) {
	args := []string{"-I.", "-I../headers", "-Wno-tsan", "stress/chain.c", "chain.c", "chain_events.c"}
	for _, sanitizer := range []string{"thread", "address,undefined"} {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
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
