package parse

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/tools/txtar"
	"weft/headers"
)

// A header never makes the parser panic or hang: it is refused, with a place,
// or gives a unit whose layout adds up.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"nccl/net_v12.h", "nccl/net_device.h", "nccl/profiler_v6.h", "nccl/common.h"} {
		b, err := fs.ReadFile(headers.FS, name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, name := range []string{"types", "layout", "names", "syntax", "tables"} {
		a, err := txtar.ParseFile("testdata/refuse/" + name + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(string(file.Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		const name = "nccl/net_v13.h"
		base, err := fs.ReadFile(headers.FS, "nccl/common.h")
		if err != nil {
			t.Fatal(err)
		}
		fsys := fstest.MapFS{name: {Data: []byte(text)}, "nccl/common.h": {Data: base}}
		start := time.Now()
		u, err := Headers(Options{FS: fsys, Headers: []string{name}, Arch: "amd64"})
		if time.Since(start) > deadline/2 {
			t.Errorf("took %v", time.Since(start))
		}
		if err != nil {
			var refused Refusals
			if !errors.As(err, &refused) {
				t.Fatalf("not a refusal: %v", err)
			}
			for _, r := range refused {
				if r.Pos.File == "" || r.What == "" {
					t.Errorf("incomplete refusal %+v", r)
				}
			}
			return
		}
		for _, r := range u.Records {
			end := int64(0)
			for _, f := range r.Fields {
				if f.Offset%f.Type.Align != 0 || !r.Union && f.Offset < end {
					t.Errorf("%s.%s is at %d, aligned to %d, after %d", r.Name, f.Name, f.Offset, f.Type.Align, end)
				}
				end = f.Offset + f.Type.Size
				if end > r.Size {
					t.Errorf("%s.%s ends at %d of %d", r.Name, f.Name, end, r.Size)
				}
			}
		}
	})
}
