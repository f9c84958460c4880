package task

import (
	"strings"
	"testing"

	"weft/internal/report"
)

func TestPanicBecomesAnError(t *testing.T) {
	log := &report.Recorder{}
	told := make(chan error, 1)
	go func() {
		defer Rescue(log, "connect", func(err error) { told <- err })
		panic("a defect")
	}()
	err := <-told
	if report.CauseOf(err) != report.Internal || log.Count("WARN", "a defect") != 1 || !strings.Contains(err.Error(), "please report") {
		t.Errorf("%v, log %q", err, log.Lines())
	}
}
