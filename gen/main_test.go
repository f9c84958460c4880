package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"weft/gen/asof"
)

// The tree is what the generator makes of it.
func TestUpToDate(t *testing.T) {
	if err := run([]string{"-root", "..", "-check"}, os.Stderr); err != nil {
		t.Error(err)
	}
}

// The same headers and rules always give the same bytes.
func TestDeterministic(t *testing.T) {
	first, err := everything(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		next, err := everything(os.DirFS(".."))
		if err != nil {
			t.Fatal(err)
		}
		a, b := map[string]string{}, map[string]string{}
		for _, f := range first {
			a[f.Path] = string(f.Data)
		}
		for _, f := range next {
			b[f.Path] = string(f.Data)
		}
		if len(a) != len(first) || !reflect.DeepEqual(a, b) {
			t.Fatal("two runs differ")
		}
	}
}

// copyTree copies what the generator reads and writes.
func copyTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"headers", "gen/rules", "transport/fastpath", "abi", "compat", "plugin", "lib", "tools/host", "internal/host", "internal/abidiff", "VERSIONING.md", "README.md", "go.mod"} {
		src := filepath.Join("..", dir)
		st, err := os.Stat(src)
		if err != nil {
			continue
		}
		dst := filepath.Join(root, dir)
		if st.IsDir() {
			err = os.CopyFS(dst, os.DirFS(src))
		} else {
			var b []byte
			if b, err = os.ReadFile(src); err == nil {
				err = os.WriteFile(dst, b, 0o666)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func edit(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s has no %q", path, from)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), from, to, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// -check fails on a hand edit of a generated file, names it, and regenerating
// repairs it.
func TestCheckFindsEdits(t *testing.T) {
	root := copyTree(t)
	edit(t, filepath.Join(root, "headers/LOCK"), "guid 16 8", "guid 16 9")
	if err := run([]string{"-root", root, "-check"}, os.Stderr); err == nil || !strings.Contains(err.Error(), ".guid") {
		t.Errorf("an edited LOCK: %v", err)
	}
	edit(t, filepath.Join(root, "headers/LOCK"), "guid 16 9", "guid 16 8")
	edit(t, filepath.Join(root, "transport/fastpath/zz_view.go"), "wfLines ", "wfLinez ")
	err := run([]string{"-root", root, "-check"}, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "transport/fastpath/zz_view.go: differs") {
		t.Errorf("an edited view: %v", err)
	}
	var out strings.Builder
	if err := run([]string{"-root", root}, &out); err != nil || out.String() != "transport/fastpath/zz_view.go\n" {
		t.Errorf("regenerating: %q, %v", out.String(), err)
	}
	if err := run([]string{"-root", root, "-check"}, os.Stderr); err != nil {
		t.Errorf("after regenerating: %v", err)
	}
}

// A changed field of a released version stops the generator.
func TestReleasedVersionsStay(t *testing.T) {
	root := copyTree(t)
	edit(t, filepath.Join(root, "headers/nccl/net_v8.h"), "int regIsGlobal; ", "long regIsGlobal;")
	err := run([]string{"-root", root}, os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "version 8 changed: ncclNetProperties_v8_t.regIsGlobal: int, 4 bytes at 28 -> long, 8 bytes at 32") {
		t.Errorf("error %v", err)
	}
}

// drop reads a folder on disk and writes into the repository.
func TestDrop(t *testing.T) {
	root, src := copyTree(t), t.TempDir()
	old, err := asof.Headers(os.DirFS("../headers"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(root, "headers")), os.CopyFS(filepath.Join(root, "headers"), old)); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"common.h", "net_device.h", "profiler_net.h", "net_v12.h"} {
		b, err := os.ReadFile(filepath.Join("../headers/nccl", h))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "WEFT_", "OTHER_")
		if h == "net_v12.h" {
			text = strings.NewReplacer("_v12", "_v13", "_V12", "_V13", "ncclNetDeviceHandle_v12_t", "ncclNetDeviceHandle_v12_t").Replace(text)
			h = "net_v13.h"
		}
		if h == "net_device.h" {
			text = strings.Replace(text, "\n#endif", "typedef ncclNetDeviceHandle_v12_t ncclNetDeviceHandle_v13_t;\n#endif", 1)
		}
		if err := os.WriteFile(filepath.Join(src, h), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run([]string{"-root", root, "drop", src}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"new         ncclNet_v13_t (net_v13.h)", "identical   ncclNetDeviceHandle_v12_t", "wrote headers/nccl/net_v13.h", "wrote headers/LOCK"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if _, err := everything(os.DirFS(root)); err != nil {
		t.Errorf("after drop: %v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"drop"}, {"other"}, {"-check", "drop", "x"}, {"-nonsense"}} {
		if err := run(args, os.Stderr); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
