package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// buildTime bounds the download and all that follows it.
const buildTime = 10 * time.Minute

// build makes dir: it fetches the package, unpacks it beside dir, takes out what is needed, and moves the result into place.
func build(ctx context.Context, version, dir string, note func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	get, err := Tool("apt-get", "apt", "the lab's kernel comes from a Debian package")
	if err != nil {
		return err
	}
	cache, err := Tool("apt-cache", "apt", "the lab's kernel comes from a Debian package")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	a := &apt{get: get, cache: cache, note: note}
	deb, err := a.fetch(ctx, version, work)
	if err != nil {
		return err
	}
	tree := filepath.Join(work, "tree")
	note("unpacking %s", filepath.Base(deb))
	dpkg, err := Tool("dpkg-deb", "dpkg", "the kernel's package is unpacked with it")
	if err != nil {
		return err
	}
	if _, err := output(ctx, "", dpkg, "-x", deb, tree); err != nil {
		return err
	}
	k := &Kernel{Package: strings.TrimSuffix(filepath.Base(deb), ".deb"), Recipe: recipe, Sums: map[string]string{}}
	out := filepath.Join(work, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	if err := k.extract(ctx, tree, out); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(out, dir)
}

// extract writes kernel, modules and manifest.
func (k *Kernel) extract(ctx context.Context, tree, out string) error {
	images, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return fmt.Errorf("the package %s holds %d kernels in boot/, want 1", k.Package, len(images))
	}
	k.Release = strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	bz, err := os.ReadFile(images[0])
	if err != nil {
		return err
	}
	kernel, err := vmlinux(ctx, bz)
	if err != nil {
		return err
	}
	if err := k.store(out, kernelFile, kernel); err != nil {
		return err
	}
	mods, err := k.modules(ctx, tree)
	if err != nil {
		return err
	}
	if err := k.store(out, modulesFile, mods); err != nil {
		return err
	}
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, manifest), text, 0o644)
}

func (k *Kernel) store(out, name string, data []byte) error {
	path := filepath.Join(out, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	sum, err := fileSum(path)
	k.Sums[name] = sum
	return err
}

// modules packs the modules and the order to load them in.
func (k *Kernel) modules(ctx context.Context, tree string) ([]byte, error) {
	root := filepath.Join(tree, "lib", "modules", k.Release)
	if _, err := os.Stat(root); err != nil {
		root = filepath.Join(tree, "usr", "lib", "modules", k.Release)
	}
	m, err := findModules(root)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]string{bootModules, labModules} {
		for _, name := range list {
			if err := m.add(ctx, name, "needed by the lab"); err != nil {
				return nil, err
			}
		}
		if k.Boot == 0 {
			k.Boot = len(m.order)
		}
	}
	k.Order = m.order
	var out bytes.Buffer
	a := &archive{w: &out}
	for _, name := range m.order {
		a.file("mod/"+name+".ko", 0o644, m.data[name])
	}
	a.file("mod/boot", 0o644, []byte(strings.Join(k.Order[:k.Boot], "\n")))
	a.file("mod/rest", 0o644, []byte(strings.Join(k.Order[k.Boot:], "\n")))
	return out.Bytes(), a.end()
}
