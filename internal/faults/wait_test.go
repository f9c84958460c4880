package faults

import (
	"testing"
	"time"
)

// settle waits until a state is reached, and says what it was at the end.
func settle(t testing.TB, what string, look func() (string, bool)) {
	t.Helper()
	var last string
	for end := time.Now().Add(patience / 2); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if last, ok = look(); ok {
			return
		}
	}
	t.Errorf("%s, %s", what, last)
}

func fds(t testing.TB, p *peer) int {
	t.Helper()
	s, err := p.h.Stat()
	must(t, err, "stat")
	return s.FDs
}
