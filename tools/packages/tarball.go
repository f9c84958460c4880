package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tarball writes what needs no root: one folder with bin, lib and share, and the links that every NCCL opens in lib/default.
func (b *build) tarball(all []entry) error {
	name := filepath.Join(b.out, fmt.Sprintf("weft-%s-linux-%s.tar.gz", b.version, b.arch))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	if err := b.write(t, all); err != nil {
		f.Close()
		return err
	}
	for _, c := range []io.Closer{t, z, f} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	fmt.Println(name)
	return nil
}

func (b *build) write(t *tar.Writer, all []entry) error {
	top := fmt.Sprintf("weft-%s-linux-%s", b.version, b.arch)
	folders := map[string]bool{}
	for _, e := range all {
		to, link := unpacked(e)
		if to == "" {
			continue
		}
		to = path.Join(top, to)
		var above []string
		for dir := path.Dir(to); dir != "."; dir = path.Dir(dir) {
			above = append(above, dir)
		}
		slices.Reverse(above)
		for _, dir := range above {
			if folders[dir] {
				continue
			}
			folders[dir] = true
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: b.time}); err != nil {
				return err
			}
		}
		if err := b.writeOne(t, e, to, link); err != nil {
			return err
		}
	}
	return nil
}

// unpacked is where an entry stands in the folder, and where its link leads there; "" for what only an installation has.
func unpacked(e entry) (to, link string) {
	switch {
	case e.path == "/usr/bin/weft", e.path == home+"/lib/"+library, strings.HasPrefix(e.path, "/usr/share/pkgconfig/"):
		return "", ""
	case slices.Contains(unnamed, path.Base(e.path)):
		return "lib/default/" + path.Base(e.path), "../" + e.link
	case path.Base(e.path) == library || slices.Contains(named, path.Base(e.path)):
		return "lib/" + path.Base(e.path), e.link
	case strings.HasPrefix(e.path, home+"/"):
		return strings.TrimPrefix(e.path, home+"/"), e.link
	}
	return strings.TrimPrefix(e.path, "/usr/"), e.link
}

func (b *build) writeOne(t *tar.Writer, e entry, to, link string) error {
	if link != "" {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: to, Linkname: link, Mode: 0o777, ModTime: b.time})
	}
	text, err := os.ReadFile(e.source)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: int64(e.mode), Size: int64(len(text)), ModTime: b.time}); err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}
