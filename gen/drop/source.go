package drop

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// stubs stand in for what NCCL's headers include and a plugin table does not
// need: CUDA, and nccl.h itself, which exists only after NCCL was built.
//
//go:embed all:stubs
var stubs embed.FS

// source is a folder of foreign headers, indexed by what they define.
type source struct {
	fsys    fs.FS
	texts   map[string]string   // without comments, by path
	paths   []string            // sorted
	defines map[string][]string // name of a type or macro -> paths
	tables  []string            // paths that define a table, those to import
}

// Bounds on a folder of headers.
const (
	maxFiles = 4096
	maxDepth = 12
	maxSize  = 1 << 20
)

// open indexes a header, with its folder as the place to find what it needs,
// or a folder with all that lies below.
func open(src string) (*source, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	dir, only := src, ""
	if !st.IsDir() {
		dir, only = filepath.Dir(src), filepath.Base(src)
	}
	return load(os.DirFS(dir), only)
}

func load(fsys fs.FS, only string) (*source, error) {
	s := &source{fsys: fsys, texts: map[string]string{}, defines: map[string][]string{}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
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
		if len(s.texts) >= maxFiles {
			return fmt.Errorf("more than %d headers: name the folder that holds the plugin headers", maxFiles)
		}
		b, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		s.texts[p] = code(string(b))
		s.paths = append(s.paths, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	sort.Strings(s.paths)
	tables := map[string]string{}
	for _, p := range s.paths {
		for _, name := range defined(s.texts[p]) {
			s.defines[name] = append(s.defines[name], p)
			if !tableType.MatchString(name) || only != "" && p != only {
				continue
			}
			if other, dup := tables[name]; dup && other != p {
				return nil, fmt.Errorf("drop: %s is defined in %s and in %s: name one of their folders", name, other, p)
			}
			tables[name] = p
		}
	}
	for _, p := range s.paths {
		for _, q := range tables {
			if p == q {
				s.tables = append(s.tables, p)
				break
			}
		}
	}
	if len(s.tables) == 0 {
		return nil, errors.New("drop: no header here defines ncclNet_vN_t, ncclCollNet_vN_t or ncclProfiler_vN_t")
	}
	return s, nil
}

var (
	tableType   = regexp.MustCompile(`^(ncclNet|ncclCollNet|ncclProfiler)_v\d+_t$`)
	definition  = regexp.MustCompile(`\}\s*(\w+)\s*;|\btypedef\b[^;{}()]*?\b(\w+)\s*;|\btypedef\b[^;{}()]*\(\s*\*\s*(\w+)\s*\)|(?m:^[ \t]*#[ \t]*define[ \t]+(\w+))`)
	usedName    = regexp.MustCompile(`\bnccl\w+|\bNCCL_\w+`)
	commentText = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

// code removes comments and the bodies of nested records, so that what is
// left of "}" is the name of a type.
func code(text string) string {
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

// order returns the headers to include so that each stands after what it
// needs, whether or not it says so, and the names that no header defines.
func (s *source) order() (headers, missing []string) {
	visited, asked := map[string]bool{}, map[string]bool{}
	var visit func(p string)
	visit = func(p string) {
		if visited[p] {
			return
		}
		visited[p] = true
		own := map[string]bool{}
		for _, name := range defined(s.texts[p]) {
			own[name] = true
		}
		for _, name := range usedName.FindAllString(s.texts[p], -1) {
			if own[name] {
				continue
			}
			if q := s.definer(name, p); q != "" {
				visit(q)
			} else if !asked[name] {
				asked[name] = true
				missing = append(missing, name)
			}
		}
		headers = append(headers, p)
	}
	for _, p := range s.tables {
		visit(p)
	}
	return headers, missing
}

// definer returns the header that defines a name: of several, the one nearest
// to who needs it.
func (s *source) definer(name, user string) string {
	best, distance := "", 0
	for _, p := range s.defines[name] {
		if d := far(path.Dir(p), path.Dir(user)); best == "" || d < distance {
			best, distance = p, d
		}
	}
	return best
}

// far counts the steps from one folder to another.
func far(a, b string) int {
	x, y := split(a), split(b)
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	return len(x) + len(y)
}

func split(dir string) []string {
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}
