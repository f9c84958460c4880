package doctor

import (
	"fmt"
	"strings"
)

// confFile is one of the files that NCCL puts into its environment, for variables that are not there.
type confFile struct {
	name    string
	from    int  // first release that reads it
	instead bool // of ~/.nccl.conf, then
	lines   []confLine
}

type confLine struct {
	number      int
	text        string
	name, value string // as NCCL takes them
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
	text, err := m.read(f.name)
	if err != nil {
		return // as NCCL does, which says nothing either
	}
	for i, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			f.lines = append(f.lines, confLine{i + 1, line, name, value})
		}
	}
	m.files = append(m.files, f)
}

// setting is a variable as a release of NCCL has it.
type setting struct {
	value string
	from  string // where it was set; "": nowhere
	undo  string // the command that takes it away
}

func (s setting) pointer() *string {
	if s.from == "" {
		return nil
	}
	return &s.value
}

func (m *Machine) setting(name string, release int) setting {
	if v, ok := m.env[name]; ok {
		return setting{v, "the environment", "unset " + name}
	}
	replaced := false
	for _, f := range m.files {
		if release < f.from || replaced && strings.HasSuffix(f.name, "/.nccl.conf") {
			continue
		}
		replaced = replaced || f.instead
		for _, l := range f.lines {
			if l.name == name {
				return setting{l.value, fmt.Sprintf("%s, line %d", f.name, l.number), fmt.Sprintf("sed -i %dd %s", l.number, f.name)}
			}
		}
	}
	return setting{}
}
