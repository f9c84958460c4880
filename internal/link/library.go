package link

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Name is the file name, and soname, of the library.
const Name = "libnccl-net-weft.so"

// Links are the names beside the library under which the releases look for a plugin. They are symbolic links:
// a copy would be a second Go runtime in the process.
var Links = []string{"libnccl-net.so", "libnccl-profiler-weft.so", "librccl-net.so", "librccl-net-weft.so", "librccl-profiler-weft.so"}

// Mode says for what the library is built.
type Mode int

const (
	Release     Mode = iota // the shared library that is shipped
	ASan                    // the shared library under the address sanitizer
	RaceArchive             // a C archive under the race detector, which works in no other form
)

// Options says what to build.
type Options struct {
	Root   string // of the repository
	Out    string // the file to write
	Mode   Mode
	Log    io.Writer // the go command's messages; nil: part of the error
	Extra  []string  // more flags for go build
	Env    []string  // more environment for go build
	Script string    // another version script than lib/zz_exports.map
	Pkg    string    // another main package than ./lib
}

// Library builds the library.
func Library(o Options) error {
	flags, err := o.flags()
	if err != nil {
		return fmt.Errorf("link %s: %w", o.Out, err)
	}
	pkg := o.Pkg
	if pkg == "" {
		pkg = "./lib"
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags=netgo,osusergo", "-o", o.Out}, flags...)
	args = append(append(args, o.Extra...), pkg)
	return run(o.Root, o.Log, append(o.Env, "CGO_ENABLED=1"), "go", args...)
}

// flags returns the flags of go build that differ by mode.
func (o Options) flags() ([]string, error) {
	if o.Mode == RaceArchive {
		return []string{"-buildmode=c-archive", "-race"}, nil
	}
	dir, err := o.inputs()
	if err != nil {
		return nil, err
	}
	// Only the tables are visible; no build id that differs from machine to machine.
	ext := append([]string{"-Wl,--version-script=" + filepath.Join(dir, "exports.map"), "-Wl,-soname," + Name, "-Wl,--build-id=none"},
		guestFlags(dir)...)
	switch o.Mode {
	case ASan:
		return []string{"-buildmode=c-shared", "-asan", extld(stamp(o.Root), ext)}, nil
	case Release:
		// Nothing may stay undefined: it would only fail in the host's dlopen. The stubs are found before the machine's own
		// C library; libc_nonshared holds what glibc always links statically (pthread_atfork).
		ext = append(ext, "-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now",
			"-L"+dir, "-static-libgcc", "-Wl,--as-needed", "-lpthread", "-ldl", "-lrt", "-lc", "-l:libc_nonshared.a")
		return []string{"-buildmode=c-shared", extld("-buildid= "+stamp(o.Root), ext)}, nil
	}
	return nil, fmt.Errorf("there is no mode %d", o.Mode)
}

func extld(before string, flags []string) string {
	return "-ldflags=" + before + "-extldflags '" + strings.Join(flags, " ") + "'"
}

// inputs makes the folder of files that the linker reads besides objects: the version script and the stubs.
// Its name is a hash of what is in it, so that the go command links again when, and only when, one of them changed.
func (o Options) inputs() (string, error) {
	path := o.Script
	if path == "" {
		path = filepath.Join(o.Root, "lib", "zz_exports.map")
	}
	script, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	list, err := Symbols(arch())
	if err != nil {
		return "", err
	}
	return made(o.Root, "link", fmt.Sprintf("%q %q %q %q %q", script, startScript, glibcText, arch(), compiler()), func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "exports.map"), script, 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, startName), []byte(startScript), 0o644); err != nil {
			return err
		}
		return writeStubs(dir, compiler(), list)
	})
}

// made returns a folder of the linker's inputs in the cache, named by the hash of what they are made of, and makes it where it is not there.
func made(root, name, of string, write func(dir string) error) (string, error) {
	cache := filepath.Join(root, ".cache")
	sum := sha256.Sum256([]byte(of))
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sum[:8]))
	if strings.ContainsAny(dir, " \t'\"\\") {
		return "", fmt.Errorf("the linker's flags cannot carry the path %q: move the checkout to one without blanks and quotes", root)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(cache, name+"-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := write(fresh); err != nil {
		return "", err
	}
	// Somebody else may have been faster with the same content.
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return "", err
	}
	return dir, nil
}

// Symlinks puts the links of the library into its folder.
func Symlinks(dir string) error {
	for _, name := range Links {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Symlink(Name, path); err != nil {
			return err
		}
	}
	return nil
}

// arch is the architecture that go build would build for.
func arch() string {
	if a := os.Getenv("GOARCH"); a != "" {
		return a
	}
	return runtime.GOARCH
}

// compiler is the C compiler that go build would use.
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

func run(dir string, log io.Writer, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", cmd, err)
		}
		return nil
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return nil
}
