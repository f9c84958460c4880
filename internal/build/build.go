// Package build makes the library, the C host and the command once for all tests of
// a source tree, so that `go test ./...` works on a fresh clone with no make before.
//
// Results lie in a cache folder named by a hash of everything that goes into them,
// made under a file lock: packages that test at the same time build once.
package build

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"

	"weft/internal/link"
)

// DistEnv names a folder (a link.Dist) with a library and a host built otherwise
// (under a sanitizer, say), which tests then use instead of building.
const DistEnv = "WEFT_TEST_DIST"

// Self is the library path that means: the tables are in the host itself.
const Self = "self"

// Library returns the path of the built library, or Self when the host that Host
// names has it inside.
func Library() (string, error) {
	if dir := os.Getenv(DistEnv); dir != "" {
		path := link.Dist(dir).Library()
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return Self, nil
		}
		return filepath.Abs(path)
	}
	return once(link.Name, func(root, out string) error {
		if err := link.Library(link.Options{Root: root, Out: out}); err != nil {
			return err
		}
		return link.Symlinks(filepath.Dir(out))
	})
}

// Host returns the path of weft-host.
func Host() (string, error) {
	if dir := os.Getenv(DistEnv); dir != "" {
		return filepath.Abs(link.Dist(dir).Program("weft-host"))
	}
	return once("weft-host", func(root, out string) error { return link.Host(link.HostOptions{Root: root, Out: out}) },
		"tools/host", "headers")
}

// Command returns the path of the program weft.
func Command() (string, error) {
	if dir := os.Getenv(DistEnv); dir != "" {
		if path := link.Dist(dir).Program("weft"); exists(path) {
			return filepath.Abs(path)
		}
	}
	return once("weft", func(root, out string) error { return link.Command(root, out, nil) })
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// Plugin compiles one C file into a plugin; flags may define macros.
func Plugin(source string, flags ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(source), ".c") + "-" + fmt.Sprintf("%x", sha256.Sum256([]byte(source+strings.Join(flags, " "))))[:8] + ".so"
	return once(name, func(root, out string) error {
		cc := os.Getenv("CC")
		if cc == "" {
			cc = "gcc"
		}
		// -Bsymbolic: in a host that has our tables inside, a plugin still means its own.
		args := append([]string{"-std=gnu11", "-O2", "-g", "-shared", "-fPIC", "-pthread", "-Wl,-Bsymbolic", "-I" + filepath.Join(root, "headers", "nccl"), "-o", out, filepath.Join(root, source)}, flags...)
		cmd := exec.Command(cc, args...)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", cc, source, err, text)
		}
		return nil
	}, "headers", relative(root, filepath.Dir(filepath.Join(root, source))), "tools/host/testdata")
}

func relative(root, path string) string {
	if r, err := filepath.Rel(root, path); err == nil {
		return r
	}
	return path
}

// Root is the folder of go.mod above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod above %s: run inside the repository", dir)
		}
	}
}

// Once makes a file that other packages' tests share; see once.
func Once(name string, make func(root, out string) error, inputs ...string) (string, error) {
	return once(name, make, inputs...)
}

// once makes a file out of the tree's inputs unless the cache has it; inputs are
// folders below the root, all of it by default.
func once(name string, make func(root, out string) error, inputs ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	key, err := hash(root, inputs)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	base := filepath.Join(root, ".cache", "build")
	dir := filepath.Join(base, name+"-"+key)
	out := filepath.Join(dir, name)
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	unlock, err := lock(filepath.Join(base, name+".lock"))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	defer unlock()
	if _, err := os.Stat(out); err == nil {
		return out, nil // another package was first
	}
	fresh := filepath.Join(dir, "new-"+name)
	if err := make(root, fresh); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	if err := os.Rename(fresh, out); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	prune(base, name, dir)
	return out, nil
}

func lock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// prune keeps the newest results of a name: tests of an older tree may still run.
func prune(base, name, keep string) {
	old, _ := filepath.Glob(filepath.Join(base, name+"-*"))
	sort.Slice(old, func(i, j int) bool { return modified(old[i]) > modified(old[j]) })
	for i, d := range old {
		if i >= 4 && d != keep {
			_ = os.RemoveAll(d) // what remains costs only space
		}
	}
}

func modified(path string) int64 {
	if st, err := os.Stat(path); err == nil {
		return st.ModTime().UnixNano()
	}
	return 0
}

// hash covers names and contents of the inputs, the Go version and the compiler.
func hash(root string, inputs []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s\n", runtime.Version(), runtime.GOARCH, os.Getenv("CC"))
	if len(inputs) == 0 {
		inputs = []string{"."}
	}
	for _, in := range append(inputs, "internal/link") {
		err := filepath.WalkDir(filepath.Join(root, in), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // somebody is editing the tree
			}
			if err != nil {
				return err
			}
			if d.IsDir() {
				if base := d.Name(); path != root && (strings.HasPrefix(base, ".") || base == "dist" || base == "docs") {
					return fs.SkipDir
				}
				return nil
			}
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".md") || !d.Type().IsRegular() {
				return nil
			}
			f, err := os.Open(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			defer f.Close()
			fmt.Fprintf(h, "%s\n", relative(root, path))
			_, err = io.Copy(h, f)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}
