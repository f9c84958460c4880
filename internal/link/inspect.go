package link

import (
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Facts is what a shared library promises its host.
type Facts struct {
	Soname   string
	Needed   []string
	Exports  []string          // defined dynamic symbols
	Versions map[string]string // undefined symbol -> the version it asks for
	BuildID  bool
}

// Inspect reads the facts from an ELF file.
func Inspect(path string) (*Facts, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	facts := &Facts{Versions: map[string]string{}, BuildID: f.Section(".note.gnu.build-id") != nil}
	if names, err := f.DynString(elf.DT_SONAME); err == nil && len(names) > 0 {
		facts.Soname = names[0]
	}
	if facts.Needed, err = f.ImportedLibraries(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range symbols {
		switch {
		case s.Section == elf.SHN_UNDEF:
			if s.Version != "" {
				facts.Versions[s.Name] = s.Version
			}
		case s.Section == elf.SHN_ABS && s.Name == s.Version: // a version's own symbol
		default:
			facts.Exports = append(facts.Exports, s.Name)
		}
	}
	slices.Sort(facts.Exports)
	return facts, nil
}

// allowed are the libraries that every glibc system has.
var allowed = []string{"libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}

// hostAllowed are what the host may need besides.
var hostAllowed = append([]string{"libm.so.6"}, allowed...)

// Portable says in words what would keep the library from loading on a system with glibc 2.28.
func (f *Facts) Portable() []string {
	var faults []string
	for _, lib := range f.Needed {
		if !slices.Contains(allowed, lib) {
			faults = append(faults, fmt.Sprintf("needs %s; only %s may be needed", lib, strings.Join(allowed, ", ")))
		}
	}
	for name, version := range f.Versions {
		if v, err := ParseVersion(version); err != nil || v.After(Newest) {
			faults = append(faults, fmt.Sprintf("%s asks for %s; the newest allowed is %s", name, version, Newest))
		}
	}
	if f.Soname != Name {
		faults = append(faults, fmt.Sprintf("soname is %q, want %q", f.Soname, Name))
	}
	if f.BuildID {
		faults = append(faults, "carries a build id, which differs between identical builds")
	}
	slices.Sort(faults)
	return faults
}

var scriptName = regexp.MustCompile(`\b(nccl[A-Za-z]+_v[0-9]+)\s*;`)

// ScriptExports lists the symbols that a version script makes visible.
func ScriptExports(script []byte) []string {
	var names []string
	for _, m := range scriptName.FindAllSubmatch(script, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return names
}
