package machine

import (
	"path"
	"regexp"
	"strings"
)

// NCCL is an installed libnccl or librccl.
type NCCL struct {
	Path    string
	Version string // "2.27.3"; "": the file's name does not tell
	Owner   string // the distribution, or the Python package that brought it
}

// pythons are where packages of Python are installed: folders of which python3* hold them.
func (m *Machine) pythons() (all []string) {
	bases := []string{"/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib"}
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if at := m.Env(variable); at != "" {
			bases = append(bases, path.Join(at, "lib"))
		}
	}
	if home := m.Env("HOME"); home != "" {
		bases = append(bases, path.Join(home, ".local/lib"))
	}
	seen := map[string]bool{}
	for _, base := range bases {
		for _, name := range m.List(base) {
			if !strings.HasPrefix(name, "python3") {
				continue
			}
			for _, packages := range []string{"site-packages", "dist-packages"} {
				at, err := m.resolve(path.Join(base, name, packages))
				if err == nil && !seen[at] {
					seen[at] = true
					all = append(all, at)
				}
			}
		}
	}
	return all
}

var (
	versionedFile = regexp.MustCompile(`\.so\.(2\.\d+\.\d+)$`)
	distInfo      = regexp.MustCompile(`^nvidia_nccl_cu\d+-(2\.\d+\.\d+)(?:\.[0-9a-z.]+)?\.dist-info$`)
)

// NCCLs are those that the loader or a package of Python would find, the loader's first.
func (m *Machine) NCCLs() (all []NCCL) {
	for _, name := range []string{"libnccl.so.2", "librccl.so.1"} {
		for _, l := range m.DlopenAll(name) {
			n := NCCL{Path: l.Path, Owner: "the loader"}
			if v := versionedFile.FindStringSubmatch(l.Real); v != nil {
				n.Version = v[1]
			}
			all = append(all, n)
		}
	}
	for _, packages := range m.pythons() {
		at := path.Join(packages, "nvidia/nccl/lib/libnccl.so.2")
		if !m.Exists(at) {
			continue
		}
		n := NCCL{Path: at, Owner: "a package of Python"}
		for _, name := range m.List(packages) {
			if v := distInfo.FindStringSubmatch(name); v != nil {
				n.Version = v[1]
			}
		}
		all = append(all, n)
	}
	return all
}
