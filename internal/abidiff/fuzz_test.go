package abidiff

import (
	"io/fs"
	"path/filepath"
	"testing"

	"weft/headers"
)

// Whatever a header holds, it is compared or refused: nothing panics, and nothing
// is waited for longer than the parser's deadline.
func FuzzHeader(f *testing.F) {
	for _, name := range []string{"net_v2.h", "net_v9.h", "profiler_v1.h", "tuner_v5.h", "common.h", "net_device.h"} {
		b, err := fs.ReadFile(headers.FS, "nccl/"+name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add("typedef struct { const char* name; ncclNet_v3_t* self; } ncclNet_v3_t;")
	f.Add("#include \"net_v3.h\"\ntypedef struct ncclNet_v3 { struct ncclNet_v3* next; void (*f)(struct ncclNet_v3 (*)(void)); } ncclNet_v3_t;")
	f.Add("typedef enum { a_v3 } ncclRow_v3_t;\ntypedef struct { ncclRow_v3_t r[2]; union { int x; struct { ncclRow_v3_t y; }; }; } ncclNet_v3_t;")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		path := filepath.Join(t.TempDir(), "net_v3.h")
		put(t, path, text)
		for _, call := range [][]string{{path}, {"net", "v3", path}, {path, path}} {
			r, err := Ask(call)
			if err != nil {
				continue
			}
			for _, form := range []string{"text", "table", "json"} {
				written(t, r, form)
			}
			if len(call) == 2 && r.Differs() {
				t.Errorf("a header differs from itself:\n%s", written(t, r, "text"))
			}
		}
	})
}
