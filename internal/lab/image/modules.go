package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bootModules are needed to reach the root file system and the control channel; labModules follow once that stands.
var (
	bootModules = []string{"virtio_pci", "virtio_console", "virtio_net", "9p", "9pnet_virtio", "overlay", "virtio_rng"}
	labModules  = []string{"crc32_generic", "crc32_pclmul", "ib_uverbs", "rdma_ucm", "rdma_rxe", "veth", "dummy", "udmabuf"}
	// optional modules are missing in some kernels, or refuse to load on some CPUs.
	optional = []string{"crc32_generic", "crc32_pclmul", "virtio_rng", "dummy", "udmabuf"}
)

// modules is the closure of some modules over what they depend on, each behind what it needs.
type modules struct {
	files   map[string]string // by name with underscores
	builtin map[string]bool
	data    map[string][]byte
	order   []string
	lack    []string // optional ones that the kernel has not
}

// findModules looks through /lib/modules/VERSION of an unpacked package.
func findModules(root string) (*modules, error) {
	m := &modules{files: map[string]string{}, builtin: map[string]bool{}, data: map[string][]byte{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name, _, ok := strings.Cut(d.Name(), ".ko"); ok {
			m.files[underscored(name)] = path
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.files) == 0 {
		return nil, fmt.Errorf("the package holds no kernel modules below %s", root)
	}
	list, err := os.ReadFile(filepath.Join(root, "modules.builtin"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		m.builtin[underscored(strings.TrimSuffix(filepath.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return m, nil
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// add puts a module behind all that it depends on.
func (m *modules) add(ctx context.Context, name, wantedBy string) error {
	name = underscored(name)
	if m.data[name] != nil || m.builtin[name] || slices.Contains(m.lack, name) {
		return nil
	}
	path, ok := m.files[name]
	if !ok {
		if slices.Contains(optional, name) {
			m.lack = append(m.lack, name)
			return nil
		}
		return fmt.Errorf("the kernel package has no module %s (%s): the cloud flavours lack it; take the general one", name, wantedBy)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data, err := decompress(ctx, filepath.Base(path), raw)
	if err != nil {
		return err
	}
	m.data[name] = data
	for _, dep := range depends(data) {
		if err := m.add(ctx, dep, "needed by "+name); err != nil {
			return err
		}
	}
	m.order = append(m.order, name)
	return nil
}

// depends reads the line "depends=a,b" of a module's information.
func depends(module []byte) []string {
	key := []byte("\x00depends=")
	at := bytes.Index(module, key)
	if at < 0 {
		return nil
	}
	list, _, _ := bytes.Cut(module[at+len(key):], []byte{0})
	if len(list) == 0 {
		return nil
	}
	return strings.Split(string(list), ",")
}
