package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weft/internal/link"
)

const plainName = "libnccl-net.so"

func ruleNone(m *Machine) []Finding {
	s := m.newest().plugin
	if !strings.EqualFold(s.value, "none") {
		return nil
	}
	return []Finding{{
		What:        "NCCL_NET_PLUGIN=" + s.value + " keeps every plugin out",
		Evidence:    s.from,
		Consequence: "NCCL from 2.28 on loads no plugin; 2.11 to 2.27 look for one of that name; none uses weft",
		Remedy:      s.undo + ", then export NCCL_NET_PLUGIN=weft",
	}}
}

// installed is weft under its own name, where the loader looks.
func (m *Machine) installed() *library {
	if l := m.dlopen(link.Name); l.weft() {
		return l
	}
	return nil
}

func ruleMissing(m *Machine) []Finding {
	s := m.newest()
	if s.net != nil || strings.EqualFold(s.plugin.value, "none") || len(m.brokenOnes()) > 0 {
		return nil
	}
	f := Finding{What: fmt.Sprintf("%v finds no plugin", s.r), Consequence: "NCCL goes over its own networks, or fails where NCCL_NET=weft is set"}
	var names []string
	for _, a := range s.asks {
		names = append(names, a.name)
	}
	f.Evidence = "NCCL_NET_PLUGIN is not set"
	if s.plugin.from != "" {
		f.Evidence = fmt.Sprintf("NCCL_NET_PLUGIN=%s (%s)", s.plugin.value, s.plugin.from)
	}
	f.Evidence += "; " + strings.Join(names, " and ") + m.notThere()
	if weft := m.installed(); weft != nil {
		f.Remedy = "export NCCL_NET_PLUGIN=weft"
		if s.plugin.from != "" && s.plugin.from != "the environment" {
			f.Remedy = s.plugin.undo + ", then " + f.Remedy
		}
		f.Evidence += "; weft is at " + weft.path
	} else {
		f.Remedy = "export LD_LIBRARY_PATH=FOLDER:$LD_LIBRARY_PATH NCCL_NET_PLUGIN=weft, FOLDER being where " + link.Name + " is (dist/lib, after make)"
	}
	return []Finding{f}
}

// notThere says where it was looked for in vain.
func (m *Machine) notThere() string {
	where := "the loader's cache and folders"
	if dirs := m.searched(); len(dirs) > 0 {
		where = "LD_LIBRARY_PATH (" + strings.Join(dirs, ", ") + "), " + where
	}
	return " not in " + where
}

func ruleOther(m *Machine) []Finding {
	weft, plain := m.installed(), m.dlopen(plainName)
	if weft == nil || plain == nil || plain.broken != "" || plain.weft() {
		return nil
	}
	f := Finding{
		What:     "another plugin has the name that NCCL asks for by itself",
		Evidence: fmt.Sprintf("%s comes first as %s; weft is %s", plain.path, plainName, weft.path),
		Consequence: "NCCL up to 2.10 takes it always, 2.28 and 2.29 for every communicator after a process's last has ended, all others where " +
			"NCCL_NET_PLUGIN is not set",
		Remedy: fmt.Sprintf("ln -sf %s %s/%s, and export LD_LIBRARY_PATH=%[2]s:$LD_LIBRARY_PATH", link.Name, path.Dir(weft.path), plainName),
	}
	if path.Dir(plain.path) == path.Dir(weft.path) {
		f.Remedy = "install weft into a folder of its own, with its links, and put that first in LD_LIBRARY_PATH"
	}
	if s := m.newest(); !s.net.weft() && s.plugin.from == "" {
		f.Remedy += "; export NCCL_NET_PLUGIN=weft"
	}
	return []Finding{f}
}

// links are the names that each need a link beside the library, and what goes wrong without.
var links = []struct{ name, needs string }{
	{plainName, link.Name},
	{"librccl-net.so", "librccl-net-weft.so"},
}

func ruleLink(m *Machine) []Finding {
	var all []Finding
	for _, l := range links {
		weft := m.dlopen(l.needs)
		if !weft.weft() || m.dlopen(l.name) != nil {
			continue
		}
		of := "NCCL"
		if strings.HasPrefix(l.name, "librccl") {
			of = "RCCL"
		}
		all = append(all, Finding{
			What:     fmt.Sprintf("only %s is installed, without its link %s", l.needs, l.name),
			Evidence: weft.path + " is there; " + l.name + m.notThere(),
			Consequence: of + " 2.28 and 2.29 forget NCCL_NET_PLUGIN when a process's last communicator ends: the next one asks for " + l.name +
				", does not find it, and goes over NCCL's own network without a word (or fails, where NCCL_NET=weft is set); up to 2.10 no release finds weft",
			Remedy: fmt.Sprintf("ln -s %s %s/%s", path.Base(weft.path), path.Dir(weft.path), l.name),
		})
	}
	return all
}

// brokenOnes are the files that a search met and that cannot be loaded, each once.
func (m *Machine) brokenOnes() []*library {
	var all []*library
	for _, s := range m.all {
		for _, a := range slices.Concat(s.asks, s.next, s.profiler) {
			if l := a.found; l != nil && l.broken != "" && !slices.ContainsFunc(all, func(o *library) bool { return o.path == l.path }) {
				all = append(all, l)
			}
		}
	}
	return all
}

func ruleBroken(m *Machine) []Finding {
	var all []Finding
	for _, l := range m.brokenOnes() {
		f := Finding{
			What: "a file has a name that NCCL gives to dlopen, and is no library that can be loaded", Evidence: l.String(),
			Consequence: "dlopen fails there and looks no further: NCCL goes on with the next name, or with its own networks",
			Remedy:      "install it anew: " + l.path,
		}
		if path.Base(l.path) == "weft" {
			f.Remedy = "take " + path.Dir(l.path) + " out of LD_LIBRARY_PATH: programs and libraries have folders of their own"
		}
		all = append(all, f)
	}
	return all
}

func ruleNet(m *Machine) []Finding {
	s := m.setting("NCCL_NET", m.newest().r.Code)
	if s.value == "" || strings.EqualFold(s.value, "weft") || !m.newest().net.weft() {
		return nil
	}
	return []Finding{{
		What: "NCCL_NET=" + s.value + " asks for another network than weft", Evidence: s.from,
		Consequence: "weft is loaded and not used, from NCCL 2.11 on",
		Remedy:      s.undo + ", or export NCCL_NET=weft",
	}}
}

func rulePath(m *Machine) []Finding {
	var all []Finding
	for _, f := range m.files {
		for _, l := range f.lines {
			if l.name == "LD_LIBRARY_PATH" {
				all = append(all, Finding{
					What: "LD_LIBRARY_PATH stands in " + f.name, Evidence: fmt.Sprintf("%s, line %d: %s", f.name, l.number, l.text),
					Consequence: "the loader reads it when a process starts, NCCL sets it later: nothing is found by it",
					Remedy:      "export " + strings.TrimSpace(l.text) + " where the job is started",
				})
			}
		}
	}
	return all
}

func ruleLine(m *Machine) []Finding {
	var all []Finding
	for _, f := range m.files {
		for _, l := range f.lines {
			name, value := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.name), "export ")), strings.Trim(strings.TrimSpace(l.value), `"'`)
			if name == l.name && value == l.value {
				continue
			}
			all = append(all, Finding{
				What:        fmt.Sprintf("%s has a line that NCCL reads otherwise than it looks", f.name),
				Evidence:    fmt.Sprintf("line %d: %q", l.number, l.text),
				Consequence: fmt.Sprintf("NCCL sets the variable %q to %q: it takes blanks, quotes, export and carriage returns as they are", l.name, l.value),
				Remedy:      fmt.Sprintf("write it as %s=%s", name, value),
			})
		}
	}
	return all
}
