package tcp

import (
	"testing"
	"time"

	"weft/internal/report"
)

// A reaper whose goroutine met a defect lets go of its streams and serves again.
func TestReaperAfterADefect(t *testing.T) {
	r := NewReaper(time.Minute, report.Discard{})
	r.mu.Lock()
	if !r.start() {
		t.Fatal("no reaper")
	}
	r.order = []*draining{nil} // the defect
	r.mu.Unlock()
	for range 1000 {
		r.mu.Lock()
		running := r.running
		r.mu.Unlock()
		if !running {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the reaper still runs")
}
