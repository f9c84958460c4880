package link

import (
	"fmt"
	"io"
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
	return run(o.Root, o.Log, nil, compiler(), append(args, "-ldl", "-lm")...)
}
