package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Machine is what a rule may look at.
type Machine struct {
	root  string // its file system is below
	env   map[string]string
	files []confFile
	cache []cached // of the loader
	all   []*sight // what each release finds
}

// Open reads the machine whose file system is below root. The environment is that of the process whose folder root has as
// proc/self: this one's, where root is /. Saved ones may have a line for each variable.
func Open(root string) (*Machine, error) {
	if info, err := os.Stat(root); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", root)
	}
	m := &Machine{root: root, env: map[string]string{}}
	text, err := m.read("/proc/self/environ")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	sep := "\x00"
	if !strings.Contains(string(text), sep) {
		sep = "\n"
	}
	for _, line := range strings.Split(string(text), sep) {
		if name, value, ok := strings.Cut(line, "="); ok {
			if _, twice := m.env[name]; !twice { // as getenv
				m.env[name] = value
			}
		}
	}
	m.readConf()
	if m.cache, err = m.readCache(); err != nil {
		return nil, err
	}
	m.all, err = m.lookUp()
	return m, err
}

// read is the content of a file, by its name on the machine.
func (m *Machine) read(name string) ([]byte, error) {
	at, err := m.resolve(name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(m.on(at))
}

// on is a file's name here.
func (m *Machine) on(name string) string { return filepath.Join(m.root, name) }

const mostLinks = 40 // that the kernel follows

// resolve follows symbolic links on the machine, whose root is not ours.
func (m *Machine) resolve(name string) (string, error) {
	done, rest := "/", strings.Split(strings.Trim(name, "/"), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(m.on(next))
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("%s: too many symbolic links", name)
		}
		to, err := os.Readlink(m.on(next))
		if err != nil {
			return "", err
		}
		if path.IsAbs(to) {
			done = "/"
		}
		rest = append(strings.Split(strings.Trim(to, "/"), "/"), rest...)
	}
	return done, nil
}
