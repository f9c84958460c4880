package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file or a link of a package.
type entry struct {
	path   string // where it is installed
	source string // the file on this machine
	link   string // instead: where a symbolic link leads
	mode   os.FileMode
}

// home is where the programs look for one another and for the library. The library's folder is apart from the programs': with
// NCCL_NET_PLUGIN=weft some releases open "weft" first, and must not find a program of that name.
const home = "/usr/lib/weft"

const library = "libnccl-net-weft.so"

// libraries is the folder in which the loader looks by itself. It must be that: the loader's cache has a library under its soname
// alone, so that links in a folder of ld.so.conf are not found.
func (b *build) libraries(format string) string {
	if format == "rpm" {
		return "/usr/lib64"
	}
	return map[string]string{"amd64": "/usr/lib/x86_64-linux-gnu", "arm64": "/usr/lib/aarch64-linux-gnu"}[b.arch]
}

// zshCompletions is where distributions of a format have zsh look for those of packages.
var zshCompletions = map[string]string{"deb": "/usr/share/zsh/vendor-completions", "rpm": "/usr/share/zsh/site-functions"}

// named are the links that a user asks for by name: NCCL_NET_PLUGIN=weft, NCCL_PROFILER_PLUGIN=weft, and RCCL's.
var named = []string{"libnccl-profiler-weft.so", "librccl-net-weft.so", "librccl-profiler-weft.so"}

// unnamed are those that every NCCL and RCCL opens without being asked.
var unnamed = []string{"libnccl-net.so", "libnccl-profiler.so", "librccl-net.so", "librccl-profiler.so"}

// links lead to the library beside them.
func links(dir string, names []string) (all []entry) {
	for _, name := range names {
		all = append(all, entry{path: path.Join(dir, name), link: library})
	}
	return all
}

// files are those of the package weft in a format. What is made for them is written into a folder.
func (b *build) files(format, made, bill string) ([]entry, error) {
	dir := b.libraries(format)
	all := []entry{
		{path: home + "/bin/weft", source: filepath.Join(b.dist, "bin/weft"), mode: 0o755},
		{path: home + "/bin/weft-host", source: filepath.Join(b.dist, "bin/weft-host"), mode: 0o755},
		{path: path.Join(dir, library), source: filepath.Join(b.dist, "lib", library), mode: 0o644},
		{path: home + "/lib/" + library, link: path.Join(dir, library)},
		{path: "/usr/bin/weft", link: "../lib/weft/bin/weft"},
		{path: "/usr/share/doc/weft/copyright", source: filepath.Join(b.root, "LICENSE"), mode: 0o644},
		{path: "/usr/share/doc/weft/weft.cdx.json", source: bill, mode: 0o644},
		{path: "/usr/share/bash-completion/completions/weft", source: filepath.Join(b.pages, "weft.bash"), mode: 0o644},
		{path: zshCompletions[format] + "/_weft", source: filepath.Join(b.pages, "_weft"), mode: 0o644},
		{path: "/usr/share/fish/vendor_completions.d/weft.fish", source: filepath.Join(b.pages, "weft.fish"), mode: 0o644},
	}
	all = append(all, links(dir, named)...)
	for _, name := range []string{"README.md", "CHANGELOG.md", "VERSIONING.md"} {
		all = append(all, entry{path: "/usr/share/doc/weft/" + name, source: filepath.Join(b.root, name), mode: 0o644})
	}
	for _, pattern := range []string{"docs/*.md", "docs/grafana/*", "docs/examples/*.*", "docs/examples/*/*"} {
		found, err := filepath.Glob(filepath.Join(b.root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			rel, err := filepath.Rel(b.root, file)
			if err != nil {
				return nil, err
			}
			all = append(all, entry{path: path.Join("/usr/share/doc/weft", filepath.ToSlash(rel)), source: file, mode: 0o644})
		}
	}
	if err := unlink(all, made); err != nil {
		return nil, err
	}
	manuals, err := filepath.Glob(filepath.Join(b.pages, "man", "*.1"))
	if err != nil {
		return nil, err
	}
	if len(manuals) == 0 {
		return nil, fmt.Errorf("%s has no man pages: run weft man %s", b.pages, filepath.Join(b.pages, "man"))
	}
	for _, page := range manuals {
		zipped, err := zip(page, made)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{path: "/usr/share/man/man1/" + filepath.Base(zipped), source: zipped, mode: 0o644})
	}
	config := filepath.Join(made, "weft.pc")
	text := fmt.Sprintf("plugindir=%s\n\nName: weft\nDescription: network, collNet, profiler and tuner plugin for every NCCL\nVersion: %s\n", dir, b.version)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	all = append(all, entry{path: "/usr/share/pkgconfig/weft.pc", source: config, mode: 0o644})
	slices.SortFunc(all, func(x, y entry) int { return strings.Compare(x.path, y.path) })
	return all, nil
}

// zip compresses a file without its time and name.
func zip(file, into string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(b); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	name := filepath.Join(into, filepath.Base(file)+".gz")
	return name, os.WriteFile(name, out.Bytes(), 0o644)
}
