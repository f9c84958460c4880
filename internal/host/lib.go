package host

import (
	"fmt"
	"strings"
)

// Lib is a plugin opened inside a host.
type Lib struct {
	h      *Host
	Handle Ptr
	Path   string
}

// Load opens a plugin with RTLD_NOW|RTLD_LOCAL on the main thread, as NCCL does.
func (h *Host) Load(path string) (*Lib, error) {
	r, err := h.Call("main", "load", Args{"path", path})
	if err != nil {
		return nil, err
	}
	return &Lib{h: h, Handle: r.Ptr("lib"), Path: path}, nil
}

// Unload is dlclose.
func (l *Lib) Unload() error {
	_, err := l.h.Call("main", "unload", Args{"lib", l.Handle})
	return err
}

// Sym is dlsym; 0 when the library has no such symbol.
func (l *Lib) Sym(name string) (Ptr, error) {
	r, err := l.h.Call("main", "sym", Args{"lib", l.Handle, "name", name})
	return r.Ptr("addr"), err
}

// Family is one of the plugin tables' families.
type Family string

// The families that the host can call.
const (
	FamilyNet  Family = "net"
	FamilyColl Family = "coll"
	FamilyProf Family = "prof"
)

// Symbol is the table's name in the library.
func (f Family) Symbol(version int) string {
	switch f {
	case FamilyColl:
		return fmt.Sprintf("ncclCollNetPlugin_v%d", version)
	case FamilyProf:
		return fmt.Sprintf("ncclProfiler_v%d", version)
	}
	return fmt.Sprintf("ncclNetPlugin_v%d", version)
}

// Versions are the first and last table version of the family.
func (f Family) Versions() (first, last int) {
	switch f {
	case FamilyColl:
		return 3, 12
	case FamilyProf:
		return 1, 6
	}
	return 2, 12
}

// Table is a bound table.
type Table struct {
	h       *Host
	Family  Family
	Version int
	As      string // the binding's name inside the host
	Addr    Ptr
	Name    string // the table's name member, read before init
	Slots   map[string]bool
}

// Bind looks the family's table up; as may be empty (then the family's name).
func (l *Lib) Bind(f Family, version int, as string) (*Table, error) {
	if as == "" {
		as = string(f)
	}
	r, err := l.h.Call("main", "bind", Args{"lib", l.Handle, "family", string(f), "version", version, "as", as})
	if err != nil {
		return nil, err
	}
	t := &Table{h: l.h, Family: f, Version: version, As: as, Addr: r.Ptr("table"), Name: r.Str("name"), Slots: map[string]bool{}}
	for _, s := range strings.Split(r.Str("slots"), ",") {
		t.Slots[s] = true
	}
	return t, nil
}

// Call calls a slot of the table with raw arguments.
func (t *Table) Call(thread, slot string, a Args) (*Reply, error) {
	return t.h.Call(thread, string(t.Family)+"."+slot, append(Args{"on", t.As}, a...))
}

// Tables lists the versions of a family that the library exports, newest first.
func (l *Lib) Tables(f Family) ([]int, error) {
	var out []int
	first, last := f.Versions()
	for v := last; v >= first; v-- {
		addr, err := l.Sym(f.Symbol(v))
		if err != nil {
			return nil, err
		}
		if addr != 0 {
			out = append(out, v)
		}
	}
	return out, nil
}
