package rendezvous

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"weft/internal/report"
)

func TestNoiseIsRateLimited(t *testing.T) {
	n := NewNoise(report.Discard{})
	now := time.Unix(1000, 0)
	why := errors.New("it begins with GET")
	from := netip.MustParseAddr("10.0.0.9")
	lines := 0
	for range 1000 {
		if n.line(from, "10.0.0.1:4", why, now) != "" {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("%d lines at once", lines)
	}
	want := "listener 10.0.0.1:4 closed 1000 connections from 10.0.0.9, the last because: it begins with GET"
	if got := n.line(from, "10.0.0.1:4", why, now.Add(noiseEvery)); got != want {
		t.Errorf("got %q", got)
	}
	for i := range 10 * noiseSources {
		a := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		n.line(a, "x", why, now.Add(noiseEvery))
	}
	if len(n.sources.seen) > noiseSources+1 {
		t.Errorf("%d sources remembered", len(n.sources.seen))
	}
}
