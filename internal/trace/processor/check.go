package processor

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/trace/chrome"
	"weft/internal/trace/draw"
	"weft/internal/trace/model"
	"weft/internal/trace/perfetto"
)

const own = "job.pftrace"

// Check writes a trace in both formats and compares what the reader finds in each with what the model has. It returns how many
// arrows there are.
func Check(t *testing.T, m *model.Trace) int {
	t.Helper()
	p := draw.New(m)
	want := expect(m, p)
	for name, write := range map[string]func(io.Writer, *draw.Picture) error{own: perfetto.Write, "job.json": chrome.Write} {
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(f, p); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var queries []string
		for _, q := range questions {
			queries = append(queries, q.query)
		}
		answers, err := Ask(t.Context(), path, queries)
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range questions {
			if q.own && name != own {
				continue
			}
			expected := q.want(want)
			slices.Sort(expected)
			slices.Sort(answers[i])
			if !slices.Equal(expected, answers[i]) {
				d := cmp.Diff(expected, answers[i])
				t.Errorf("%s: %s (-model +reader):\n%s", name, q.name, d[:min(len(d), 4000)])
			}
		}
	}
	return p.Arrows
}
