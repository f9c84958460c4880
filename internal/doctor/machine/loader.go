package machine

import (
	"path"
	"runtime"
	"slices"
	"strings"
)

// folders are where the loader looks last, in its order, on the distributions that there are.
var folders = map[string][]string{
	"amd64": {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"},
	"arm64": {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"},
}

// Dlopen is what dlopen of a name finds in a process with the machine's environment, nil for nothing. What a program or libnccl
// itself says of paths (DT_RUNPATH) is not known here.
func (m *Machine) Dlopen(name string) *Library {
	if name == "" {
		return nil
	}
	if strings.Contains(name, "/") {
		return m.open(name)
	}
	for _, at := range m.places(name) {
		if l := m.open(at); l != nil {
			return l
		}
	}
	return nil
}

// DlopenAll is every file that dlopen of a name could find if those before it were gone, each once.
func (m *Machine) DlopenAll(name string) (all []*Library) {
	seen := map[string]bool{}
	for _, at := range m.places(name) {
		real, err := m.resolve(at)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		if l := m.open(at); l != nil {
			all = append(all, l)
		}
	}
	return all
}

// places are where dlopen looks for a name without a slash, in its order.
func (m *Machine) places(name string) (all []string) {
	m.asked[name] = true
	for _, dir := range m.Searched() {
		all = append(all, path.Join(dir, name))
	}
	for _, c := range m.cache {
		if c.name == name {
			all = append(all, c.path)
		}
	}
	for _, dir := range folders[runtime.GOARCH] {
		all = append(all, path.Join(dir, name))
	}
	return all
}

// LibraryFolders are the loader's own, in its order.
func LibraryFolders() []string { return folders[runtime.GOARCH] }

// First is LD_LIBRARY_PATH with a folder before those that are in it.
func (m *Machine) First(folder string) string {
	if have := m.env["LD_LIBRARY_PATH"]; have != "" {
		return folder + ":" + have
	}
	return folder
}

// Searched are the folders of LD_LIBRARY_PATH as the process started with it.
func (m *Machine) Searched() []string {
	return slices.DeleteFunc(strings.FieldsFunc(m.env["LD_LIBRARY_PATH"], func(c rune) bool { return c == ':' || c == ';' }),
		func(dir string) bool { return !path.IsAbs(dir) })
}
