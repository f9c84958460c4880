package perfetto_test

import (
	"testing"

	"weft/internal/trace/model"
	"weft/internal/trace/processor"
	"weft/internal/trace/rectest"
)

// Perfetto's own reader finds in a merged trace what the model has: nothing that it did not take, each slice, arrow and nesting.
func TestRealReader(t *testing.T) {
	if processor.Path() == "" {
		t.Skip("WEFT_TEST_TRACE_PROCESSOR names no trace_processor_shell of Perfetto")
	}
	for _, c := range []struct {
		name  string
		files []*rectest.File
	}{
		{"8 ranks of 2 machines whose clocks differ", rectest.Job{Ranks: 8, PerMachine: 4, Iterations: 20, Version: 6, Skew: 90_000_000, Late: map[int]uint64{5: 60_000}, Slow: map[int]uint64{2: 50_000}}.Files()},
		{"a host that tells no communicators", rectest.Job{Ranks: 8, PerMachine: 2, Iterations: 3, Version: 3}.Files()},
		{"all else", []*rectest.File{rectest.Rest()}},
		{"the end of a long job", rectest.Job{Ranks: 4, PerMachine: 1, Iterations: 2000, Version: 6}.Files()},
	} {
		t.Run(c.name, func(t *testing.T) { processor.Check(t, model.New(rectest.Read(t, c.files...))) })
	}
}
