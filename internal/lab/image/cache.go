package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// recipe changes when what is built from a package changes, so that an older cache is built anew.
const recipe = 1

// Kernel is a kernel in the cache.
type Kernel struct {
	Release string // such as 6.1.0-44-amd64
	Package string
	Recipe  int
	Order   []string // of the modules, those of the boot first
	Boot    int      // how many of them the boot needs
	Sums    map[string]string

	dir string
}

// The files of a cached kernel.
const (
	kernelFile  = "vmlinux"
	modulesFile = "modules.cpio"
	manifest    = "manifest.json"
)

// Vmlinux is the path of the ELF kernel.
func (k *Kernel) Vmlinux() string { return filepath.Join(k.dir, kernelFile) }

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// Get returns the kernel of a version such as 6.1 from the cache, where it is made when it is not there or not whole.
// Note is told what takes long.
func Get(ctx context.Context, version string, note func(string, ...any)) (*Kernel, error) {
	if !versionForm.MatchString(version) {
		return nil, fmt.Errorf("kernel version %q: want one such as 6.1 or 6.12", version)
	}
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("the lab's machines share this machine's programs and are x86-64; this one is %s", runtime.GOARCH)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no place for the kernel: %w", err)
	}
	base = filepath.Join(base, "weft", "lab")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(base, "lock"), note)
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir := filepath.Join(base, "linux-"+version)
	k, err := load(dir)
	if err == nil {
		return k, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		note("the cached kernel is made anew: %v", err)
	}
	if err := build(ctx, version, dir, note); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", version, err)
	}
	return load(dir)
}

// lock holds the cache until unlock, or waits for who holds it.
func lock(ctx context.Context, path string, note func(string, ...any)) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			note("waiting for another weft lab that holds %s", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock %s is held by another process: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// load reads a cached kernel and compares its files with the sums written when it was made.
func load(dir string) (*Kernel, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		return nil, err
	}
	k := &Kernel{dir: dir}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	if k.Recipe != recipe {
		return nil, fmt.Errorf("it was made by another version of weft")
	}
	for _, name := range []string{kernelFile, modulesFile} {
		sum, err := fileSum(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if sum != k.Sums[name] {
			return nil, fmt.Errorf("%s is not what was stored: SHA-256 %s, want %s", name, sum, k.Sums[name])
		}
	}
	return k, nil
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Initrd writes the initial RAM file system of a machine: the modules, and program as the first process.
func (k *Kernel) Initrd(path string, program []byte) error {
	mods, err := os.ReadFile(filepath.Join(k.dir, modulesFile))
	if err != nil {
		return err
	}
	var head bytes.Buffer
	a := &archive{w: &head}
	for _, d := range []string{"dev", "proc", "sys", "ro", "rw", "new", "mod"} {
		a.dir(d)
	}
	a.device("dev/console", 0o600, 5, 1)
	a.file("init", 0o755, program)
	if err := a.end(); err != nil {
		return err
	}
	return os.WriteFile(path, append(head.Bytes(), mods...), 0o644)
}
