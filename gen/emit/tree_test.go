package emit

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"weft/gen/asof"
	"weft/headers"
)

// realTree copies headers, rules and fast prototypes of this repository, to be
// changed at will.
func realTree(t *testing.T) fstest.MapFS {
	t.Helper()
	root, out := os.DirFS("../.."), fstest.MapFS{}
	old, err := asof.Headers(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range old {
		if path.Ext(n) == ".h" {
			out["headers/"+n] = f
		}
	}
	for _, glob := range []string{"gen/rules/*.rules", "transport/fastpath/fastpath.h", "transport/fastpath/layout.h", "guest/guest.h"} {
		names, err := fs.Glob(root, glob)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %d files", glob, err, len(names))
		}
		for _, n := range names {
			data, err := fs.ReadFile(root, n)
			if err != nil {
				t.Fatal(err)
			}
			out[n] = &fstest.MapFile{Data: data}
		}
	}
	return out
}

// edit replaces the first occurrence of old, which must be there.
func edit(t *testing.T, tree fstest.MapFS, name, old, new string) {
	t.Helper()
	f := tree[name]
	if f == nil || !strings.Contains(string(f.Data), old) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	tree[name] = &fstest.MapFile{Data: []byte(strings.Replace(string(f.Data), old, new, 1))}
}

// nextVersion adds net_v13.h, the same as net_v12.h but for its number.
func nextVersion(t *testing.T, tree fstest.MapFS) string {
	t.Helper()
	text := string(tree["headers/nccl/net_v12.h"].Data)
	text = strings.NewReplacer("_v12", "_v13", "V12", "V13").Replace(text)
	text = strings.Replace(text, "typedef struct", "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;\n\ntypedef struct", 1)
	name := "headers/nccl/net_v13.h"
	tree[name] = &fstest.MapFile{Data: []byte(text)}
	return name
}

// at gives "file:line:col" of the first occurrence of what after from.
func at(t *testing.T, tree fstest.MapFS, name, from, what string) string {
	t.Helper()
	text := string(tree[name].Data)
	i := strings.Index(text, from)
	if i < 0 {
		t.Fatalf("%s does not contain %q", name, from)
	}
	j := strings.Index(text[i:], what)
	if j < 0 {
		t.Fatalf("%s does not contain %q after %q", name, what, from)
	}
	before := text[:i+j]
	line := strings.Count(before, "\n") + 1
	col := len(before) - strings.LastIndex(before, "\n")
	return path.Join("nccl", path.Base(name)) + ":" + itoa(line) + ":" + itoa(col)
}
