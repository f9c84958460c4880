package doctor

import (
	"debug/elf"
	"fmt"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"weft/internal/link"
)

// library is a file that dlopen would find.
type library struct {
	path   string           // where it is found
	soname string           // what it calls itself
	tables map[string][]int // versions that it exports, by family: ncclNetPlugin, ncclProfiler
	broken string           // why dlopen fails; empty: it does not
}

func (l *library) weft() bool { return l != nil && l.soname == link.Name }

// String is the library in a line.
func (l *library) String() string {
	switch {
	case l == nil:
		return "not found"
	case l.broken != "":
		return l.path + ", which cannot be loaded: " + l.broken
	case l.weft():
		return l.path + " (weft)"
	}
	return l.path + " (not weft)"
}

const (
	netTable      = "ncclNetPlugin"
	profilerTable = "ncclProfiler"
)

// has reports whether one of these versions of a table is there.
func (l *library) has(family string, versions []int) bool {
	return l != nil && slices.ContainsFunc(versions, func(v int) bool { return slices.Contains(l.tables[family], v) })
}

// folders are where the loader looks last, in its order, on the distributions that there are.
var folders = map[string][]string{
	"amd64": {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"},
	"arm64": {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"},
}

// dlopen is what dlopen of a name finds in a process with the machine's environment, nil for nothing. What a program or libnccl
// itself says of paths (DT_RUNPATH) is not known here.
func (m *Machine) dlopen(name string) *library {
	if name == "" {
		return nil
	}
	if strings.Contains(name, "/") {
		return m.open(name)
	}
	for _, dir := range m.searched() {
		if l := m.open(path.Join(dir, name)); l != nil {
			return l
		}
	}
	for _, c := range m.cache {
		if c.name == name {
			if l := m.open(c.path); l != nil {
				return l
			}
		}
	}
	for _, dir := range folders[runtime.GOARCH] {
		if l := m.open(path.Join(dir, name)); l != nil {
			return l
		}
	}
	return nil
}

// searched are the folders of LD_LIBRARY_PATH as the process started with it.
func (m *Machine) searched() []string {
	return slices.DeleteFunc(strings.FieldsFunc(m.env["LD_LIBRARY_PATH"], func(c rune) bool { return c == ':' || c == ';' }),
		func(dir string) bool { return !path.IsAbs(dir) })
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

var table = regexp.MustCompile(`^(ncclNetPlugin|ncclProfiler)_v(\d+)$`)

// open reads a library; nil: there is none, or only for another machine, which the loader passes over.
func (m *Machine) open(name string) *library {
	at, err := m.resolve(name)
	if err != nil {
		return nil
	}
	l := &library{path: name, tables: map[string][]int{}}
	f, err := elf.Open(m.on(at))
	if err != nil {
		l.broken = fmt.Sprintf("it is no library (%v)", err)
		return l
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != machines[runtime.GOARCH] {
		return nil
	}
	if names, err := f.DynString(elf.DT_SONAME); err == nil && len(names) > 0 {
		l.soname = names[0]
	}
	if flags, err := f.DynValue(elf.DT_FLAGS_1); f.Type != elf.ET_DYN || err == nil && len(flags) > 0 && flags[0]&uint64(elf.DF_1_PIE) != 0 {
		l.broken = "it is a program"
		return l
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		l.broken = fmt.Sprintf("its symbols cannot be read (%v)", err)
		return l
	}
	for _, s := range symbols {
		if p := table.FindStringSubmatch(s.Name); p != nil && s.Section != elf.SHN_UNDEF {
			v, _ := strconv.Atoi(p[2])
			l.tables[p[1]] = append(l.tables[p[1]], v)
		}
	}
	return l
}
