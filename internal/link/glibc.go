package link

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed glibc.txt
var glibcText string

//go:embed glibc-host.txt
var hostText string

// baseArm64 is the version that aarch64's first glibc gave to all its symbols.
const baseArm64 = "GLIBC_2.17"

// Symbol is one symbol of the C library that weft or its host may use.
type Symbol struct {
	Library string // DT_SONAME of the file that held it in glibc 2.28
	Name    string
	Version string
	Size    int // of a data object; 0 for a function
}

// Symbols returns the library's allow-list for an architecture as Go names it.
func Symbols(arch string) ([]Symbol, error) { return symbols("glibc.txt", glibcText, arch) }

// HostSymbols returns that of weft-host.
func HostSymbols(arch string) ([]Symbol, error) {
	list, err := Symbols(arch)
	if err != nil {
		return nil, err
	}
	more, err := symbols("glibc-host.txt", hostText, arch)
	return append(list, more...), err
}

func symbols(file, text, arch string) ([]Symbol, error) {
	var list []Symbol
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s:%d: want a library, a version and symbols, have %q", file, i+1, line)
		}
		version, err := versionFor(arch, fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		for _, name := range fields[2:] {
			s := Symbol{Library: fields[0], Name: name, Version: version}
			if rest, ok := strings.CutPrefix(name, "object:"); ok {
				var size string
				s.Name, size, _ = strings.Cut(rest, ":")
				if s.Size, err = strconv.Atoi(size); err != nil {
					return nil, fmt.Errorf("%s:%d: %s: a data object is written object:NAME:SIZE: %w", file, i+1, name, err)
				}
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// versionFor turns an x86-64 symbol version into the one that arch has.
func versionFor(arch, version string) (string, error) {
	n, err := ParseVersion(version)
	if err != nil {
		return "", err
	}
	if n.After(Newest) {
		return "", fmt.Errorf("%s is newer than %s", version, Newest)
	}
	switch arch {
	case "amd64":
		return version, nil
	case "arm64":
		if base, _ := ParseVersion(baseArm64); base.After(n) {
			return baseArm64, nil
		}
		return version, nil
	}
	return "", fmt.Errorf("no symbol versions are known for %s: weft is built for amd64 and arm64", arch)
}

// Version is a GLIBC_x.y.z symbol version.
type Version [3]int

// Newest is the youngest symbol version that the library may need.
var Newest = Version{2, 28}

// ParseVersion reads GLIBC_x.y or GLIBC_x.y.z.
func ParseVersion(s string) (Version, error) {
	var v Version
	rest, ok := strings.CutPrefix(s, "GLIBC_")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return v, fmt.Errorf("%q is not a glibc symbol version", s)
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return v, fmt.Errorf("%q is not a glibc symbol version: %w", s, err)
		}
		v[i] = n
	}
	return v, nil
}

// After says whether v is younger than w.
func (v Version) After(w Version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] > w[i]
		}
	}
	return false
}

func (v Version) String() string {
	if v[2] == 0 {
		return fmt.Sprintf("GLIBC_%d.%d", v[0], v[1])
	}
	return fmt.Sprintf("GLIBC_%d.%d.%d", v[0], v[1], v[2])
}
