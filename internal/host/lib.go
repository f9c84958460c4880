package host

import (
	"fmt"
	"slices"
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
	FamilyTune Family = "tune"
)

// span is what there is of a family: zz_versions.go has it from headers/ and gen/rules.
type span struct {
	family                 Family
	symbol                 string
	first, newest, witness int
}

func (f Family) span() span {
	i := slices.IndexFunc(families, func(s span) bool { return s.family == f })
	if i < 0 {
		return span{}
	}
	return families[i]
}

// Families are all of them, net first.
func Families() (all []Family) {
	for _, s := range families {
		all = append(all, s.family)
	}
	return all
}

// Symbol is the table's name in the library.
func (f Family) Symbol(version int) string { return fmt.Sprintf("%s_v%d", f.span().symbol, version) }

// Versions are the first and last table version of the family.
func (f Family) Versions() (first, last int) { return f.span().first, f.span().newest }

// Newest is the last table version of the family.
func (f Family) Newest() int { return f.span().newest }

// Witnessed tells whether tools/host calls a version by hand; a newer one it calls as the newest that it knows.
func (f Family) Witnessed(version int) bool { return version <= f.span().witness }

// Witness is the newest version that tools/host calls by hand.
func (f Family) Witness() int { return f.span().witness }

// Table is a bound table.
type Table struct {
	h       *Host
	Family  Family
	Version int
	As      string // the binding's name inside the host
	Addr    Ptr
	Name    string // the table's name member, read before init
	Slots   map[string]bool
	Devs    int    // that makeVDevice takes at most; 0: there is none
	News    string // of a version that is not witnessed: what is passed as zero or not called
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
	t := &Table{h: l.h, Family: f, Version: version, As: as, Addr: r.Ptr("table"), Name: r.Str("name"), News: r.Str("news"), Devs: int(r.Int("devs")), Slots: map[string]bool{}}
	for _, s := range strings.Split(r.Str("slots"), ",") {
		t.Slots[s] = true
	}
	return t, nil
}

// Unwitnessed says how a table is called that is newer than the host's templates; nothing for others.
func (t *Table) Unwitnessed() string {
	if t.Family.Witnessed(t.Version) {
		return ""
	}
	text := fmt.Sprintf("%s is unwitnessed: it is called as v%d is", t.Family.Symbol(t.Version), t.Family.Witness())
	if t.News != "" {
		text += "; " + t.News
	}
	return text
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
