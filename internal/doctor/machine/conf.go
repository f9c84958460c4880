package machine

import (
	"fmt"
	"strings"
)

// confFile is one of the files that NCCL puts into its environment, for variables that are not there.
type confFile struct {
	name    string
	from    int  // first release that reads it
	instead bool // of ~/.nccl.conf, then
	lines   []ConfLine
}

// ConfLine is a line of such a file that sets a variable.
type ConfLine struct {
	File        string
	Number      int // from 1
	Text        string
	Name, Value string // as NCCL takes them
}

// firstConfFile is the first release that knows NCCL_CONF_FILE.
const firstConfFile = 22300

// readConf reads them in NCCL's order. The user's folder is HOME, which until 2.29 is looked up in the list of users.
func (m *Machine) readConf() {
	if name := m.env["NCCL_CONF_FILE"]; name != "" {
		m.addConf(confFile{name: name, from: firstConfFile, instead: true})
	}
	if home := m.env["HOME"]; home != "" {
		m.addConf(confFile{name: strings.TrimSuffix(home, "/") + "/.nccl.conf"})
	}
	m.addConf(confFile{name: "/etc/nccl.conf"})
}

func (m *Machine) addConf(f confFile) {
	text, err := m.readFile(f.name)
	if err != nil {
		return // as NCCL does, which says nothing either
	}
	for i, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			f.lines = append(f.lines, ConfLine{f.name, i + 1, line, name, value})
		}
	}
	m.files = append(m.files, f)
}

// ConfLines are the lines of all the files that set a variable, in NCCL's order.
func (m *Machine) ConfLines() (all []ConfLine) {
	for _, f := range m.files {
		all = append(all, f.lines...)
	}
	return all
}

// Setting is a variable as a release of NCCL has it.
type Setting struct {
	Value string
	From  string // where it was set; "": nowhere
	Undo  string // the command that takes it away
}

// Pointer is the value, nil where it is not set.
func (s Setting) Pointer() *string {
	if s.From == "" {
		return nil
	}
	return &s.Value
}

// Setting is a variable as the release with this code has it: the environment comes before NCCL's files.
func (m *Machine) Setting(name string, release int) Setting {
	if v, ok := m.env[name]; ok {
		return Setting{v, "the environment", "unset " + name}
	}
	replaced := false
	for _, f := range m.files {
		if release < f.from || replaced && strings.HasSuffix(f.name, "/.nccl.conf") {
			continue
		}
		replaced = replaced || f.instead
		for _, l := range f.lines {
			if l.Name == name {
				return Setting{l.Value, fmt.Sprintf("%s, line %d", f.name, l.Number), fmt.Sprintf("sed -i %dd %s", l.Number, f.name)}
			}
		}
	}
	return Setting{}
}

// Settings are all variables as the release has them.
func (m *Machine) Settings(release int) map[string]string {
	all := map[string]string{}
	for name := range m.env {
		all[name] = m.env[name]
	}
	for _, l := range m.ConfLines() {
		if s := m.Setting(l.Name, release); s.From != "" {
			all[l.Name] = s.Value
		}
	}
	return all
}
