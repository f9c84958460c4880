package owner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Find lists the files that are named, and those with a suffix in folders that are
// named, each once; empty are folders that have none.
func Find(names []string, suffix string) (paths, empty []string, err error) {
	seen := map[string]bool{}
	add := func(path string) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			paths = append(paths, path)
		}
	}
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, nil, err
		}
		if !st.IsDir() {
			add(name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, nil, err
		}
		some := false
		for _, e := range entries {
			// One that begins with a dot is not whole yet.
			if strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
				add(filepath.Join(name, e.Name()))
				some = true
			}
		}
		if !some {
			empty = append(empty, name)
		}
	}
	return paths, empty, nil
}

// Open opens a file and reads it. A pipe that nobody writes does not hold up the caller.
func Open[F any](path string, read func(r io.ReaderAt, size int64) (F, error)) (f F, err error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return f, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return f, err
	}
	if st.Mode().IsRegular() {
		f, err = read(in, st.Size())
	} else {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return f, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return f, nil
}
