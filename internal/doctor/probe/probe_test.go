package probe

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// All that loopback takes comes back, of both families; where nobody answers, nothing is known.
func TestLargest(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "::1"} {
		at := netip.MustParseAddr(text)
		a := &Answerer{}
		to, err := a.Open("lo", at)
		if err != nil {
			t.Logf("%s: %v", text, err) // a machine without IPv6
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for _, full := range []int{100, witness, 1500, 9000, 65535} {
			if passes, told, err := Largest(ctx, "lo", at, to, full); passes != full || told || err != nil {
				t.Errorf("%s: %d of %d pass, %v, %v", text, passes, full, told, err)
			}
		}
		a.Close()
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		if passes, _, err := Largest(ctx, "lo", at, to, 9000); err == nil {
			t.Errorf("%s: %d pass, and nobody answers", text, passes)
		}
		cancel()
	}
}

// Sizes divide what lies between, and there is one as long as something does.
func TestBetween(t *testing.T) {
	for low := 576; low < 70_000; low += 997 {
		for _, high := range []int{low + 2, low + 9, low + 100, low + 8424} {
			sizes := between(low, high)
			if len(sizes) == 0 || sizes[0] <= low || sizes[len(sizes)-1] >= high {
				t.Errorf("between %d and %d: %v", low, high, sizes)
			}
		}
	}
}
