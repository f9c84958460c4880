package plugin

import (
	"errors"
	"path/filepath"
	"testing"

	"weft/internal/build"
)

// TestStressOfChain has threads tell chained profilers of events, under the sanitizers.
func TestStressOfChain(t *testing.T) {
	sources, err := filepath.Glob("../compat/zz_chain_profiler_v*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	args := append([]string{"-I.", "-I../headers", "-I../compat", "-I../guest", "-I../transport/fastpath", "-Wno-tsan",
		"stress/chain.c", "chain.c", "chain_events.c", "../compat/codes.c"}, sources...)
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
