package plugin

import (
	"errors"
	"testing"

	"weft/internal/build"
)

// TestStressOfChain has threads tell chained profilers of events, under the sanitizers.
func TestStressOfChain(t *testing.T) {
	sanitized(t, []string{"thread", "address,undefined"}, "-Wno-tsan", "stress/chain.c", "chain.c", "chain_events.c")
}

// TestRecordsOfEvents has every field of every type of event where the reader looks for it.
func TestRecordsOfEvents(t *testing.T) {
	sanitized(t, []string{"address,undefined"}, "-I../transport/record", "stress/profile.c", "profile.c")
}

func sanitized(t *testing.T, sanitizers []string, args ...string) {
	t.Helper()
	for _, sanitizer := range sanitizers {
		t.Run(sanitizer, func(t *testing.T) {
			t.Parallel()
			err := build.Sanitized(sanitizer, t.TempDir(), append([]string{"-I.", "-I../headers"}, args...)...)
			if errors.Is(err, build.ErrNoSanitizer) {
				t.Skipf("this compiler has no runtime for -fsanitize=%s:\n%s", sanitizer, err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
