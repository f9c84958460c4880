package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the top of the repository.
const root = "../.."

// files lists what the repository holds: what git tracks or would track, or, outside a checkout, everything.
var files = sync.OnceValues(func() ([]string, error) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		var list []string
		for _, f := range strings.Split(string(out), "\x00") {
			if info, err := os.Stat(filepath.Join(root, f)); f != "" && err == nil && info.Mode().IsRegular() {
				list = append(list, f)
			}
		}
		return list, nil
	}
	var list []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			rel, err := filepath.Rel(root, p)
			list = append(list, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	return list, err
})

func list(t *testing.T) []string {
	t.Helper()
	l, err := files()
	if err != nil {
		t.Fatal(err)
	}
	if len(l) == 0 {
		t.Fatal("no files found")
	}
	return l
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testdata(file string) bool {
	return strings.Contains("/"+file, "/testdata/")
}

func generated(file string) bool { return strings.HasPrefix(path.Base(file), "zz_") }

// goFile is the head of a Go file.
type goFile struct {
	name    string
	pkg     string // folder
	test    bool
	imports []string
	ast     *ast.File
}

var goFiles = sync.OnceValues(func() ([]goFile, error) {
	all, err := files()
	if err != nil {
		return nil, err
	}
	var out []goFile
	for _, f := range all {
		if !strings.HasSuffix(f, ".go") || testdata(f) {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f), nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		g := goFile{name: f, pkg: path.Dir(f), test: strings.HasSuffix(f, "_test.go"), ast: tree}
		for _, i := range tree.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return nil, err
			}
			g.imports = append(g.imports, p)
		}
		out = append(out, g)
	}
	return out, nil
})

func sources(t *testing.T) []goFile {
	t.Helper()
	l, err := goFiles()
	if err != nil {
		t.Fatal(err)
	}
	return l
}
