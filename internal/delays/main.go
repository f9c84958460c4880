// Command delays writes copies of the product's Go sources in which threads pause at random, for go build -overlay: tests and code
// that depend on luck with timing then fail (make test-delays).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weft/internal/build"
)

const usage = `usage: delays -o DIR [FOLDER ...]
Writes DIR/overlay.json, for go build -overlay, and the files that it names. The FOLDERs, of the repository, are transport and
plugin unless they are given. WEFT_TEST_DELAYS=1 to 9 says how often what is built so pauses.
`

func main() {
	out := flag.String("o", "", "folder to write to")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	folders := flag.Args()
	if len(folders) == 0 {
		folders = product
	}
	if _, err := write(*out, folders); err != nil {
		fmt.Fprintln(os.Stderr, "delays:", err)
		os.Exit(1)
	}
}

// product is where goroutines and locks are that a host has in its process.
var product = []string{"transport", "plugin"}

// write makes the overlay in dir and returns the path of its list.
func write(dir string, folders []string) (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	copies := filepath.Join(dir, "copies")
	if err := os.RemoveAll(copies); err != nil { // of files that are no more
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || !wanted(d.Name()):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fresh, err := rewrite(path, text)
			if err != nil || fresh == nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			name = filepath.Join(copies, name)
			overlay.Replace[path] = name
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			return os.WriteFile(name, fresh, 0o644)
		})
		if err != nil {
			return "", err
		}
	}
	if len(overlay.Replace) == 0 {
		return "", fmt.Errorf("no goroutine, lock or channel in %s below %s: is that the product?", strings.Join(folders, ", "), root)
	}
	text, err := json.MarshalIndent(overlay, "", "\t")
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, append(text, '\n'), 0o644)
}

// wanted leaves tests out, and what is generated: it only hands calls on.
func wanted(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_")
}
