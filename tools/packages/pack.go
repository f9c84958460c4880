package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// pack is one package.
type pack struct {
	name  string
	files []entry
}

var about = map[string]string{
	"weft": `Network, collNet, profiler and tuner plugin for every NCCL
One library for NCCL 2.4 and later, RCCL and NCCLX, and the command weft.
NCCL_NET_PLUGIN=weft has a job use it.`,
	"weft-default": `Have every NCCL of the machine use weft
Links under the names that NCCL opens without being asked.`,
}

// pack writes one package of a format.
func (b *build) pack(format string, p pack) error {
	made, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	version, before := b.plain()
	info := &nfpm.Info{
		Name: p.name, Arch: b.arch, Platform: "linux", Version: version, Prerelease: before, VersionSchema: "none", Release: "1",
		Section: "libs", Priority: "optional", Maintainer: "The weft authors <weft@localhost>", Description: about[p.name], License: "BSD-3-Clause",
		DisableGlobbing: true, MTime: b.time,
	}
	info.RPM.BuildHost, info.RPM.Group = "localhost", "System Environment/Libraries"
	libc := map[string]string{"deb": "libc6 (>= 2.28)", "rpm": "glibc >= 2.28"}
	info.Depends = []string{libc[format]}
	if format == "deb" {
		info.Suggests = []string{"libibverbs1"}
	}
	scripts, err := os.MkdirTemp("", "weft-scripts-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scripts)
	again := filepath.Join(scripts, "ldconfig")
	if err := os.WriteFile(again, []byte("#!/bin/sh\nset -e\nldconfig\n"), 0o755); err != nil {
		return err
	}
	info.Scripts.PostInstall, info.Scripts.PostRemove = again, again
	if p.name != "weft" {
		info.Depends = []string{"weft"}
	}
	for _, e := range p.files {
		c := &files.Content{Source: e.source, Destination: e.path, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: e.mode, MTime: b.time}}
		if e.link != "" {
			c.Type, c.Source = files.TypeSymlink, e.link
		}
		info.Contents = append(info.Contents, c)
	}
	if format == "rpm" {
		for _, dir := range folders(p.files) {
			info.Contents = append(info.Contents, &files.Content{Destination: dir, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: b.time}})
		}
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	name := filepath.Join(b.out, made.ConventionalFileName(info))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := made.Package(info, f); err != nil {
		f.Close()
		return err
	}
	fmt.Println(name)
	return f.Close()
}

// folders are those that the package alone uses. rpm removes only what a package names; dpkg finds them itself.
func folders(all []entry) (own []string) {
	for _, e := range all {
		for dir := path.Dir(e.path); strings.Contains(dir+"/", "/weft/"); dir = path.Dir(dir) {
			own = append(own, dir)
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}
