// Package source reads headers that are not ours, one of them or a folder, as
// NCCL's releases ship them: in any order, and without what they take for granted.
package source

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"weft/gen/model"
)

// stubs stand in for what NCCL's headers include and a plugin table does not
// need: CUDA, and nccl.h itself, which exists only after NCCL was built.
//
//go:embed all:stubs
var stubs embed.FS

// Headers is a folder of them, indexed by what they define.
type Headers struct {
	fsys    fs.FS
	texts   map[string]string   // without comments, by path
	paths   []string            // sorted
	defines map[string][]string // name of a type or macro -> paths
	tables  []string            // paths that define a table, those to import
	named   []string            // those of them that should, by their names, and do not seem to
	plan    *plan               // how the source was read
	leaders []string            // headers that include one of those: they have what all versions share
	banned  map[string]error    // paths that cannot be read and count as empty, and why
	absent  map[string]string   // what headers without a table include and the source does not have, and who does
}

// ErrNoTable means that there is nothing that NCCL looks up.
var ErrNoTable = errors.New("no header here defines ncclNet_vN_t, ncclCollNet_vN_t, ncclProfiler_vN_t or ncclTuner_vN_t")

// Bounds on a folder of headers.
const (
	maxFiles = 4096
	maxDepth = 12
	maxSize  = 1 << 20
)

// Open indexes a header, with its folder as the place to find what it needs,
// or a folder with all that lies below.
func Open(src string) (*Headers, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, err
	}
	dir, only := src, ""
	switch {
	case st.IsDir():
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file nor a folder, but %v", src, st.Mode().Type())
	case st.Size() > maxSize:
		return nil, fmt.Errorf("%s has %d bytes, and a header of plugins has at most %d", src, st.Size(), maxSize)
	default:
		dir, only = filepath.Dir(src), filepath.Base(src)
	}
	return Load(os.DirFS(dir), only)
}

// Load indexes the header called only, or with "" all.
func Load(fsys fs.FS, only string) (*Headers, error) {
	s := &Headers{fsys: fsys, texts: map[string]string{}, defines: map[string][]string{}, banned: map[string]error{}, absent: map[string]string{}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && only != "" && p != ".":
			return fs.SkipDir // what lies beside one header may be anything
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || strings.Count(p, "/") >= maxDepth):
			return fs.SkipDir
		case d.IsDir() || path.Ext(p) != ".h" || !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxSize {
			return nil
		}
		if len(s.texts) >= maxFiles && only != "" {
			return fs.SkipAll
		}
		if len(s.texts) >= maxFiles {
			return fmt.Errorf("more than %d headers: name the folder that holds the plugin headers", maxFiles)
		}
		b, err := fs.ReadFile(fsys, p)
		switch {
		case err != nil && only != "" && p != only:
			return nil
		case err != nil:
			return err
		}
		s.add(p, b)
		return nil
	})
	if err == nil && only != "" && s.texts[only] == "" { // it is not called .h, or there is too much beside it
		var b []byte
		if b, err = fs.ReadFile(fsys, only); err == nil {
			s.add(only, b)
		}
	}
	if err != nil {
		return nil, err
	}
	sort.Strings(s.paths)
	for _, p := range s.paths {
		for _, name := range defined(s.texts[p]) {
			s.defines[name] = append(s.defines[name], p)
		}
	}
	if err := s.choose(only); err != nil {
		return nil, err
	}
	if len(s.tables) == 0 {
		return nil, ErrNoTable
	}
	return s, nil
}

func (s *Headers) add(p string, text []byte) {
	if _, known := s.texts[p]; !known {
		s.paths = append(s.paths, p)
	}
	s.texts[p] = code(string(text))
}

// choose finds the headers that define tables: all, or those that one header
// includes.
func (s *Headers) choose(only string) error {
	among := s.paths
	if only != "" {
		among = s.included(only)
	}
	home := map[string]string{}
	for _, p := range among {
		found := false
		for _, name := range defined(s.texts[p]) {
			if !model.TableType.MatchString(name) {
				continue
			}
			if other := home[name]; other != "" && other != p {
				return fmt.Errorf("%s is defined in %s and in %s: name one of their folders", name, other, p)
			}
			home[name], found = p, true
		}
		if !found && model.TableHeader.MatchString(path.Base(p)) && !s.leads(p) {
			s.named, found = append(s.named, p), true
		}
		if found {
			s.tables = append(s.tables, p)
		}
	}
	if len(s.tables) == 0 && s.texts[only] != "" {
		s.tables = []string{only} // the parser may know better why
	}
	sort.Strings(s.tables)
	for _, p := range among {
		switch {
		case slices.Contains(s.tables, p):
			continue
		case slices.ContainsFunc(s.includes(p), func(q string) bool { return slices.Contains(s.tables, q) }):
			s.leaders = append(s.leaders, p)
		}
		for _, m := range inclusion.FindAllStringSubmatch(s.texts[p], -1) {
			if strings.HasPrefix(m[1], `"`) && s.find(path.Join(path.Dir(p), m[2])) == "" && !upstream.MatchString(path.Base(m[2])) {
				s.absent[m[2]] = p
			}
		}
	}
	return nil
}

// includes lists the headers of the source that one includes by itself.
func (s *Headers) includes(p string) []string {
	var list []string
	for _, m := range inclusion.FindAllStringSubmatch(s.texts[p], -1) {
		if q := s.find(path.Join(path.Dir(p), m[2])); q != "" {
			list = append(list, q)
		}
	}
	return list
}

// leads reports whether p includes a header with a table.
func (s *Headers) leads(p string) bool {
	for _, q := range s.included(p) {
		if slices.ContainsFunc(defined(s.texts[q]), model.TableType.MatchString) {
			return true
		}
	}
	return false
}

var (
	definition    = regexp.MustCompile(`\}\s*(\w+)\s*;|\btypedef\b[^;{}()]*?\b(\w+)\s*;|\btypedef\b[^;{}()]*\(\s*\*\s*(\w+)\s*\)|(?m:^[ \t]*#[ \t]*define[ \t]+(\w+))`)
	inclusion     = regexp.MustCompile(`(?m:^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">])`)
	usedName      = regexp.MustCompile(`\bnccl\w+|\bNCCL_\w+`)
	attributeText = regexp.MustCompile(`__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)`)
	commentText   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

// code removes comments and attributes, so that what follows "}" is the name
// of a type.
func code(text string) string {
	text = attributeText.ReplaceAllString(text, "")
	return commentText.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) + " " })
}

// defined lists the types and macros that a text defines.
func defined(text string) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatch(text, -1) {
		for _, name := range m[1:] {
			if name != "" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}
