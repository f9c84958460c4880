package link

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// HostOptions says how to build weft-host.
type HostOptions struct {
	Root    string    // of the repository
	Out     string    // the file to write
	Log     io.Writer // the compiler's messages; nil: part of the error
	CFlags  []string  // more flags, such as -fsanitize=address
	Archive string    // a library built as RaceArchive, linked whole into the host instead of being opened by it
}

// Host builds the C process that loads a plugin as NCCL does.
func Host(o HostOptions) error {
	sources, err := filepath.Glob(filepath.Join(o.Root, "tools", "host", "*.c"))
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("link %s: no C files in %s", o.Out, filepath.Join(o.Root, "tools", "host"))
	}
	args := []string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-pthread", "-ffile-prefix-map=" + o.Root + "=.", "-I" + filepath.Join(o.Root, "headers", "nccl"), "-o", o.Out}
	args = append(append(args, o.CFlags...), sources...)
	if o.Archive != "" {
		// The race detector's runtime wants its fixed addresses, hence no position-independent executable. The host finds the
		// tables in itself, so they must be in the dynamic symbol table.
		args = append(args, "-no-pie", "-Wl,--whole-archive", o.Archive, "-Wl,--no-whole-archive",
			"-Wl,--export-dynamic-symbol=nccl*Plugin_v*", "-Wl,--export-dynamic-symbol=ncclProfiler_v*")
	}
	if o.Archive != "" || len(o.CFlags) > 0 { // a sanitizer's runtime asks for more of the C library
		return run(o.Root, o.Log, nil, compiler(), append(args, "-ldl", "-lm")...)
	}
	dir, err := hostInputs(o.Root)
	if err != nil {
		return err
	}
	return run(o.Root, o.Log, nil, compiler(), append(args, filepath.Join(dir, renamedName),
		"-L"+dir, "-static-libgcc", "-Wl,--as-needed", "-lpthread", "-ldl", "-lm", "-lc", "-l:libc_nonshared.a")...)
}

// hostInputs makes the folder of what the linker reads besides the host's own files.
func hostInputs(root string) (string, error) {
	list, err := HostSymbols(arch())
	if err != nil {
		return "", err
	}
	return made(root, "host", fmt.Sprintf("%q %q %q %q %q", renamed, glibcText, hostText, arch(), compiler()), func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, renamedName), []byte(renamed), 0o644); err != nil {
			return err
		}
		return writeStubs(dir, compiler(), list)
	})
}

const renamedName = "renamed.c"

// renamed has the names that the headers of glibc 2.38 and later give to functions of old where _GNU_SOURCE is set.
const renamed = `#include <stdlib.h>

long __isoc23_strtol(const char* s, char** end, int base) { return strtol(s, end, base); }
long long __isoc23_strtoll(const char* s, char** end, int base) { return strtoll(s, end, base); }
unsigned long __isoc23_strtoul(const char* s, char** end, int base) { return strtoul(s, end, base); }
unsigned long long __isoc23_strtoull(const char* s, char** end, int base) { return strtoull(s, end, base); }
`
