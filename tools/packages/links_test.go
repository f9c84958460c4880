package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Every link of a page in the archive leads to a file of the archive, and what only the sources have is named.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bin/weft", "bin/weft-host", "lib/" + library, "weft.bash", "_weft", "weft.fish", "man/weft.1", "bill"} {
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := build{root: "../..", dist: dir, pages: dir, arch: "amd64", version: "0.0.0"}
	files, err := b.files("rpm", t.TempDir(), filepath.Join(dir, "bill"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := b.write(w, files); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	has, pages := map[string]bool{}, map[string]string{}
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		has[path.Clean(h.Name)] = true
		if path.Ext(h.Name) == ".md" {
			pages[h.Name] = string(text)
		}
	}
	links, said := 0, 0
	for page, text := range pages {
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			if to := leadsTo(page, m[2]); to != "" {
				links++
				if !has[to] {
					t.Errorf("%s: the link %s leads to no file", page, m[2])
				}
			}
		}
		said += strings.Count(text, " (in the sources)")
	}
	if links < 50 || said == 0 {
		t.Errorf("%d links, and %d to what is in the sources, on %d pages", links, said, len(pages))
	}
}
