package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoSanitizer says that the compiler lacks what a sanitizer needs at run time.
var ErrNoSanitizer = errors.New("no runtime of the sanitizer")

// Sanitized compiles a program of C with a sanitizer, without a warning, into
// dir, and runs it with seed 1 and two rounds. args are its sources and further
// flags; check.h is there for it. The error has what either said.
func Sanitized(sanitizer, dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	root, err := Root()
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "program")
	args = append([]string{"-I" + filepath.Join(root, "internal/build"), "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-fvisibility=hidden", "-fsanitize=" + sanitizer,
		"-fno-sanitize-recover=all", "-o", program}, append(args, "-lpthread")...)
	out, err := exec.CommandContext(ctx, cc, args...).CombinedOutput()
	switch {
	case err != nil && strings.Contains(string(out), "cannot find"):
		return fmt.Errorf("%w: %s", ErrNoSanitizer, out)
	case err != nil || len(out) > 0:
		return fmt.Errorf("compile: %v\n%s", err, out)
	}
	run := exec.CommandContext(ctx, program, "1", "2")
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("run: %w\n%s", err, out)
	}
	return nil
}
