package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Entry is a file, folder or symbolic link of the machine that was looked at.
type Entry struct {
	Name string // on the machine
	Dir  bool
	Link string // what a symbolic link says
	Text []byte // a file's content, where it was read
}

// shown is what was looked at: the evidence of every finding.
type shown struct {
	all     map[string]Entry
	refused map[string]string // files that are there and may not be read, and why
}

func (s *shown) put(e Entry) {
	if s.all == nil {
		s.all = map[string]Entry{}
	}
	if have, ok := s.all[e.Name]; !ok || have.Text == nil {
		s.all[e.Name] = e
	}
}

// text is what was read of a file; false: it was not.
func (s *shown) text(name string) ([]byte, bool) {
	e := s.all[name]
	return e.Text, e.Text != nil
}

func (s *shown) file(name string, text []byte) { s.put(Entry{Name: name, Text: text}) }
func (s *shown) link(name, to string)          { s.put(Entry{Name: name, Link: to}) }
func (s *shown) thing(name string, dir bool)   { s.put(Entry{Name: name, Dir: dir}) }

// refuse remembers what is there and was not shown. Attributes of sysfs that do not apply answer EINVAL and the like: that is their
// way to be absent.
func (s *shown) refuse(name string, err error) {
	if !errors.Is(err, fs.ErrPermission) {
		return
	}
	if s.refused == nil {
		s.refused = map[string]string{}
	}
	s.refused[name] = err.Error()
}

// Unseen are the files that a rule asked for and this process may not read, in a line each.
func (m *Machine) Unseen() (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(m.shown.refused)) {
		lines = append(lines, name+": permission denied")
	}
	return lines
}

// Evidence is all that was looked at, by name: a machine to which every rule says the same. Of the environment only what concerns
// NCCL is in it, of a library what was read of it, and of PCI's configuration what Access Control Services say.
func (m *Machine) Evidence() []Entry {
	all := maps.Clone(m.shown.all)
	if all == nil {
		all = map[string]Entry{}
	}
	for at := range all {
		if strings.HasSuffix(at, "/environ") && strings.HasPrefix(at, "/proc/") {
			delete(all, at)
		}
	}
	put := func(name string, text string) { all[name] = Entry{Name: name, Text: []byte(text)} }
	put("/proc/self/environ", m.environText())
	if len(m.cache) > 0 {
		put(cacheFile, m.tellCache())
	}
	put(addressFile, addressText(m.kernel.addresses()))
	var later strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.later)) {
		fmt.Fprintf(&later, "%s %d\n", name, m.later[name])
	}
	if m.later != nil {
		put(laterFile, later.String())
	}
	var list []Entry
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, selfless(all[name]))
	}
	return list
}

// selfless has a process's own folder under the name by which every process asks for it.
func selfless(e Entry) Entry {
	rest, ok := strings.CutPrefix(e.Name, "/proc/")
	number, below, _ := strings.Cut(rest, "/")
	if ok && number != "" && strings.Trim(number, "0123456789") == "" {
		e.Name = strings.TrimSuffix("/proc/self/"+below, "/")
	}
	if e.Name == "/proc/self" {
		e.Link, e.Dir = "", true
	}
	return e
}

// concerns are the beginnings of the variables that say something about NCCL's network.
var concerns = []string{"NCCL_", "RCCL_", "WEFT_", "UCX_", "CUDA_VISIBLE_DEVICES=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", "HOME=", "VIRTUAL_ENV=", "CONDA_PREFIX="}

func (m *Machine) environText() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.env)) {
		if slices.ContainsFunc(concerns, func(p string) bool { return strings.HasPrefix(name+"=", p) }) {
			fmt.Fprintf(&b, "%s=%s\n", name, strings.ReplaceAll(m.env[name], "\n", " "))
		}
	}
	return b.String()
}
