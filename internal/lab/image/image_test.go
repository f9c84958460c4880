package image

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestArchive lets cpio itself read what is written.
func TestArchive(t *testing.T) {
	var out bytes.Buffer
	a := &archive{w: &out}
	a.dir("d")
	a.file("d/odd", 0o644, []byte("12345"))
	a.file("d/empty", 0o755, nil)
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	if out.Len()%4 != 0 {
		t.Errorf("%d bytes: another archive behind it would not be found", out.Len())
	}
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("cpio is not installed")
	}
	dir := t.TempDir()
	cmd := exec.Command(cpio, "-idm", "--quiet")
	cmd.Dir, cmd.Stdin = dir, &out
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "d/odd")); err != nil || string(got) != "12345" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "d/empty")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestModulesComeBehindWhatTheyNeed(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"kernel/a/top.ko":     "ELF\x00depends=mid-dle,base\x00more",
		"kernel/b/mid-dle.ko": "ELF\x00depends=base,inside\x00",
		"kernel/base.ko":      "ELF\x00depends=\x00",
		"modules.builtin":     "kernel/lib/inside.ko\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := findModules(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"top", "udmabuf", "base"} { // udmabuf is optional, and not there
		if err := m.add(t.Context(), name, "the test"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"base", "mid_dle", "top"}, m.order); diff != "" {
		t.Error(diff)
	}
	if err := m.add(t.Context(), "rdma_rxe", "the test"); err == nil || !strings.Contains(err.Error(), "rdma_rxe") {
		t.Errorf("a module that is missing: %v", err)
	}
}

func TestDecompress(t *testing.T) {
	want := bytes.Repeat([]byte("weft"), 1000)
	for _, tool := range []string{"xz", "zstd", "gzip"} {
		t.Run(tool, func(t *testing.T) {
			if _, err := exec.LookPath(tool); err != nil {
				t.Skipf("%s is not installed", tool)
			}
			cmd := exec.Command(tool, "-c")
			cmd.Stdin = bytes.NewReader(want)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got, err := decompress(t.Context(), "the test", packed)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err := decompress(t.Context(), "the test", packed[:len(packed)/2]); err == nil {
				t.Error("half of it was taken")
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	_, err := decompress(t.Context(), "the test", []byte("\x28\xb5\x2f\xfd...."))
	if err == nil || !strings.Contains(err.Error(), "install the package zstd") {
		t.Errorf("without zstd: %v", err)
	}
}

func TestNoKernelImage(t *testing.T) {
	for _, bz := range [][]byte{nil, make([]byte, 4096)} {
		if _, err := vmlinux(t.Context(), bz); err == nil {
			t.Errorf("%d bytes of nothing were taken for a kernel", len(bz))
		}
	}
}

// TestKernelPackage has an apt-cache that answers as Debian's does.
func TestKernelPackage(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "apt-cache")
	script := "#!/bin/sh\nprintf 'linux-image-amd64\\n  Depends: linux-image-6.1.0-44-amd64\\n'\n"
	if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	a := &apt{cache: fake, get: "false", note: t.Logf}
	if name, err := a.kernelPackage(t.Context(), "6.1"); err != nil || name != "linux-image-6.1.0-44-amd64" {
		t.Errorf("%q, %v", name, err)
	}
	if _, err := a.kernelPackage(t.Context(), "6.12"); err == nil || !strings.Contains(err.Error(), "6.1.0-44") {
		t.Errorf("a version that apt has not: %v", err)
	}
}

func TestCacheNoticesDamage(t *testing.T) {
	dir := t.TempDir()
	k := &Kernel{Release: "6.1", Recipe: recipe, Sums: map[string]string{}}
	for _, name := range []string{kernelFile, modulesFile} {
		if err := k.store(dir, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifest), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, kernelFile), []byte("vmlinuz"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir); err == nil {
		t.Error("a changed kernel was taken")
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, t.Logf); err == nil {
		t.Error("two hold the lock")
	}
	unlock()
	unlock, err = lock(t.Context(), path, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
