package machine

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"weft/internal/link"
)

// Library is a file that dlopen would find.
type Library struct {
	Path   string           // where it is found
	Real   string           // the file behind symbolic links
	Soname string           // what it calls itself
	Tables map[string][]int // versions that it exports, by family: ncclNetPlugin, ncclProfiler, ncclTunerPlugin
	Broken string           // why dlopen fails; empty: it does not
}

// The families of tables that NCCL looks for.
const (
	NetTable      = "ncclNetPlugin"
	ProfilerTable = "ncclProfiler"
	TunerTable    = "ncclTunerPlugin"
)

// Weft reports whether the library is weft.
func (l *Library) Weft() bool { return l != nil && l.Soname == link.Name }

// String is the library in a line.
func (l *Library) String() string {
	switch {
	case l == nil:
		return "not found"
	case l.Broken != "":
		return l.Path + ", which cannot be loaded: " + l.Broken
	case l.Weft():
		return l.Path + " (weft)"
	}
	return l.Path + " (not weft)"
}

// Has reports whether one of these versions of a table is there.
func (l *Library) Has(family string, versions []int) bool {
	return l != nil && slices.ContainsFunc(versions, func(v int) bool { return slices.Contains(l.Tables[family], v) })
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

var table = regexp.MustCompile(`^(ncclNetPlugin|ncclProfiler|ncclTunerPlugin)_v(\d+)$`)

// open reads a library, once; nil: there is none, or only for another machine, which the loader passes over.
func (m *Machine) open(name string) *Library {
	l, again := m.libraries[name]
	if !again {
		l = m.openFile(name)
		m.libraries[name] = l
	}
	return l
}

func (m *Machine) openFile(name string) *Library {
	m.at.Store(name)
	at, err := m.resolve(name)
	if err != nil {
		return nil
	}
	if l := m.told(name, at); l != nil {
		return l
	}
	l := &Library{Path: name, Real: at, Tables: map[string][]int{}}
	if !l.read(m.fs, on(at)) {
		return nil
	}
	m.shown.file(at, []byte(l.tell()))
	return l
}

// read fills in what the file says; false: it is for another machine.
func (l *Library) read(files fs.FS, name string) bool {
	file, err := files.Open(name)
	if err != nil {
		l.Broken = fmt.Sprintf("it cannot be opened (%v)", err)
		return true
	}
	defer file.Close()
	at, ok := file.(io.ReaderAt)
	if !ok {
		l.Broken = "it is no file"
		return true
	}
	f, err := elf.NewFile(at)
	if err != nil {
		l.Broken = fmt.Sprintf("it is no library (%v)", err)
		return true
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != machines[runtime.GOARCH] {
		return false
	}
	if names, err := f.DynString(elf.DT_SONAME); err == nil && len(names) > 0 {
		l.Soname = names[0]
	}
	if flags, err := f.DynValue(elf.DT_FLAGS_1); f.Type != elf.ET_DYN || err == nil && len(flags) > 0 && flags[0]&uint64(elf.DF_1_PIE) != 0 {
		l.Broken = "it is a program"
		return true
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		l.Broken = fmt.Sprintf("its symbols cannot be read (%v)", err)
		return true
	}
	for _, s := range symbols {
		if p := table.FindStringSubmatch(s.Name); p != nil && s.Section != elf.SHN_UNDEF {
			v, _ := strconv.Atoi(p[2])
			l.Tables[p[1]] = append(l.Tables[p[1]], v)
		}
	}
	return true
}

// told is how a copy of a machine stands for a library: lines of text, which tell writes. A live machine has none.
const toldHead = "a library, as weft doctor saw it\n"

func (l *Library) tell() string {
	var b strings.Builder
	b.WriteString(toldHead)
	fmt.Fprintf(&b, "soname %s\nbroken %s\n", l.Soname, strings.ReplaceAll(l.Broken, "\n", " "))
	for _, family := range []string{NetTable, ProfilerTable, TunerTable} {
		for _, v := range l.Tables[family] {
			fmt.Fprintf(&b, "exports %s %d\n", family, v)
		}
	}
	return b.String()
}

func (m *Machine) told(name, at string) *Library {
	if m.Live() {
		return nil
	}
	f, err := m.fs.Open(on(at))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	rest, ok := bytes.CutPrefix(text, []byte(toldHead))
	if err != nil || !ok {
		return nil
	}
	m.shown.file(at, text)
	l := &Library{Path: name, Real: at, Tables: map[string][]int{}}
	for line := range strings.Lines(string(rest)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "soname":
			l.Soname = value
		case "broken":
			l.Broken = value
		case "exports":
			family, version, _ := strings.Cut(value, " ")
			if v, err := strconv.Atoi(version); err == nil {
				l.Tables[family] = append(l.Tables[family], v)
			}
		}
	}
	return l
}
