package rectest

import (
	"bytes"
	"testing"

	"weft/internal/trace"
)

// Read reads files that were made.
func Read(t *testing.T, files ...*File) []*trace.File {
	t.Helper()
	var all []*trace.File
	for _, f := range files {
		r, err := trace.Read(bytes.NewReader(f.Bytes), int64(len(f.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
