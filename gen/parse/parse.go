// Package parse reads C headers into the model, and refuses, with file and
// line, whatever it is not sure to understand. It needs no C compiler: the
// preprocessor and parser are modernc.org/cc/v4, and the system's headers are
// the few embedded under sysroot/.
package parse

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"weft/gen/model"
)

// Arches are the architectures whose models are compared; all are LP64 and
// little endian.
var Arches = []string{"amd64", "arm64"}

// Options say what is parsed. The zero value is of no use.
type Options struct {
	FS      fs.FS    // holds the headers and everything they include by "..."; it may have a method One(name string) string for a file's one name
	Headers []string // paths in FS, in the order in which they are included
	Arch    string   // one of Arches

	// Prelude is C that precedes the headers, for those that forget an
	// include. What it declares is known but not part of the unit.
	Prelude string

	// Library allows what a library's header may contain beside types: inline
	// functions and variables (both skipped), attributes of functions,
	// _Alignas, and tables that no plugin can be generated for.
	Library bool

	// System, if not nil, is searched before the embedded sysroot for what is
	// included by <...>, and after the including folder for "...".
	System fs.FS
}

// Headers parses o.Headers as one translation unit. The error, if any, is of
// type Refusals, or comes from the file system.
func Headers(o Options) (*model.Unit, error) {
	b, err := build(o)
	if err != nil {
		return nil, err
	}
	return b.unit, nil
}

// NCCL parses the headers of all families under fsys, nccl/net_v*.h and so on,
// oldest first, on every architecture, and requires one result.
func NCCL(fsys fs.FS) (*model.Unit, error) {
	headers, err := versioned(fsys, "nccl")
	if err != nil {
		return nil, err
	}
	return agreed(Options{FS: fsys, Headers: headers})
}

// Fastpath parses a header of our own, plain C11 declarations with prototypes
// and macros, on every architecture.
func Fastpath(fsys fs.FS, header string) (*model.Unit, error) {
	return agreed(Options{FS: fsys, Headers: []string{header}, Library: true})
}

// agreed parses on every architecture and refuses what differs among them.
func agreed(o Options) (*model.Unit, error) {
	var first *model.Unit
	for _, arch := range Arches {
		o.Arch = arch
		u, err := Headers(o)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = u
		} else if diff := compare(first, u); diff != "" {
			return nil, fmt.Errorf("parse %s: %s and %s give different models:\n%s", strings.Join(o.Headers, " "), Arches[0], arch, diff)
		}
	}
	return first, nil
}

// versioned lists the headers of tables in dir: family by
// family, oldest first.
func versioned(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("parse headers: %w", err)
	}
	type header struct {
		family  string
		version int
		path    string
	}
	var hs []header
	for _, e := range entries {
		if m := model.TableHeader.FindStringSubmatch(e.Name()); m != nil {
			v, err := strconv.Atoi(m[2])
			if err != nil {
				return nil, fmt.Errorf("parse headers: %s: version out of range", e.Name())
			}
			hs = append(hs, header{m[1], v, path.Join(dir, e.Name())})
		}
	}
	if len(hs) == 0 {
		return nil, errors.New("parse headers: no net_vN.h, profiler_vN.h or tuner_vN.h in " + dir)
	}
	sort.Slice(hs, func(i, j int) bool {
		if hs[i].family != hs[j].family {
			return hs[i].family < hs[j].family
		}
		return hs[i].version < hs[j].version
	})
	var paths []string
	for _, h := range hs {
		paths = append(paths, h.path)
	}
	return paths, nil
}
