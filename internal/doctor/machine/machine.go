// Package machine reads what weft doctor looks at: a machine's files below a root, and a process's environment. It decides nothing,
// changes nothing, and remembers what it was shown, so that a copy of that is the same machine to every rule.
package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Machine is what a rule may look at. It is for one goroutine, but for Reading.
type Machine struct {
	fs     fs.FS // its file system, with symbolic links
	env    map[string]string
	over   map[string]string // what a process would have instead
	files  []confFile
	cache  []cached // of the loader
	kernel kernel
	shown  shown
	at     atomic.Value // the name of the file that is being read

	functions func() []*Function
	cards     func() []*Card
	nics      func() []*NIC
	asked     map[string]bool     // names given to dlopen
	libraries map[string]*Library // that were opened, by name; nil: nothing that the loader takes
	later     map[string]int64    // counters of the second look, by file
}

// Open is the machine whose file system is below root: this one, where root is /. Nothing is read before Start.
func Open(root string) (*Machine, error) {
	if info, err := os.Stat(root); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", root)
	}
	m := &Machine{fs: os.DirFS(root)}
	m.kernel = fileKernel{m}
	if filepath.Clean(root) == "/" {
		m.kernel = liveKernel{}
	}
	m.at.Store("/")
	return m, nil
}

// OpenFS is a copy of a machine.
func OpenFS(files fs.FS) *Machine {
	m := &Machine{fs: files}
	m.kernel = fileKernel{m}
	m.at.Store("/")
	return m
}

// Start reads the environment, that of the process whose folder the machine has as proc/self, and what every search needs. A saved
// environment may have a line for each variable. A second Start is a new beginning; files are those that were read before.
func (m *Machine) Start() error {
	m.env, m.libraries, m.asked, m.files = map[string]string{}, map[string]*Library{}, map[string]bool{}, nil
	m.functions, m.cards, m.nics = sync.OnceValue(m.readFunctions), sync.OnceValue(m.readCards), sync.OnceValue(m.readNICs)
	text, err := m.readFile("/proc/self/environ")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
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
	for name, value := range m.over {
		m.env[name] = value
	}
	m.readConf()
	m.cache, err = m.readCache()
	return err
}

// Override has the machine look, from the next Start on, as if the process had these variables, too.
func (m *Machine) Override(env map[string]string) { m.over = env }

// Live reports whether this is the machine that runs us, not a copy.
func (m *Machine) Live() bool { _, live := m.kernel.(liveKernel); return live }

// Reading is the file that was asked for last, for who waits in vain. Any goroutine may ask.
func (m *Machine) Reading() string { return m.at.Load().(string) }

// Env is a variable of the process, "" where it is not set.
func (m *Machine) Env(name string) string { return m.env[name] }

// mostRead bounds a file of text: what a rule looks at is small.
const mostRead = 4 << 20

// readFile is the content of a file, by its name on the machine.
func (m *Machine) readFile(name string) ([]byte, error) {
	m.at.Store(name)
	at, err := m.resolve(name)
	if err != nil {
		return nil, err
	}
	if text, again := m.shown.text(at); again {
		return text, nil // every rule sees the same
	}
	text, err := m.fresh(at)
	if err != nil {
		m.shown.refuse(name, err)
		return nil, err
	}
	m.shown.file(at, text)
	return text, nil
}

// fresh reads a resolved file as it is now.
func (m *Machine) fresh(at string) ([]byte, error) {
	f, err := m.fs.Open(on(at))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostRead))
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// Text is a file's content without the blanks around it; "" where it cannot be read.
func (m *Machine) Text(name ...string) string {
	text, _ := m.readFile(path.Join(name...)) // what cannot be read is told by Unseen, or is not there
	return strings.TrimSpace(string(text))
}

// Lines are a file's, without those that are empty.
func (m *Machine) Lines(name ...string) []string {
	return slices.DeleteFunc(strings.Split(m.Text(name...), "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}

// Int is the first word of a file as a number.
func (m *Machine) Int(name ...string) (int64, bool) {
	word, _, _ := strings.Cut(m.Text(name...), " ")
	n, err := strconv.ParseInt(word, 0, 64)
	return n, err == nil
}

// Exists reports a file or folder.
func (m *Machine) Exists(name ...string) bool {
	at, err := m.resolve(path.Join(name...))
	if err != nil {
		return false
	}
	info, err := fs.Lstat(m.fs, on(at))
	if err != nil {
		return false
	}
	m.shown.thing(at, info.IsDir())
	return true
}

// List is what a folder holds, by name; nothing where there is none.
func (m *Machine) List(name ...string) (names []string) {
	folder := path.Join(name...)
	m.at.Store(folder)
	at, err := m.resolve(folder)
	if err != nil {
		return nil
	}
	entries, err := fs.ReadDir(m.fs, on(at))
	if err != nil {
		m.shown.refuse(folder, err)
		return nil
	}
	m.shown.thing(at, true)
	for _, e := range entries {
		names = append(names, e.Name())
		if e.Type()&fs.ModeSymlink == 0 {
			m.shown.thing(path.Join(at, e.Name()), e.IsDir())
		} else if to, err := fs.ReadLink(m.fs, on(path.Join(at, e.Name()))); err == nil {
			m.shown.link(path.Join(at, e.Name()), to)
		}
	}
	return names
}

// on is a file's name in the file system.
func on(name string) string {
	if name = strings.Trim(name, "/"); name == "" {
		return "."
	}
	return name
}

const mostLinks = 40 // that the kernel follows

// resolve follows symbolic links on the machine, whose root is not ours.
func (m *Machine) resolve(name string) (string, error) {
	done, rest := "/", strings.Split(strings.Trim(name, "/"), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := fs.Lstat(m.fs, on(next))
		if err != nil {
			m.shown.refuse(name, err)
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("%s: too many symbolic links", name)
		}
		to, err := fs.ReadLink(m.fs, on(next))
		if err != nil {
			return "", err
		}
		m.shown.link(next, to)
		if path.IsAbs(to) {
			done = "/"
		}
		rest = append(strings.Split(strings.Trim(to, "/"), "/"), rest...)
	}
	return done, nil
}
