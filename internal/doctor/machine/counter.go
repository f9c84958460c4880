package machine

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// Counter is what a file counts: since the machine or its driver started, and between two looks.
type Counter struct {
	Name   string // of the file
	Total  int64
	Rising int64 // between the looks
	Looks  int   // 1: Rising is not known
}

// Counter reads one; false: there is no such file, or it counts nothing.
func (m *Machine) Counter(name ...string) (c Counter, known bool) {
	file := path.Join(name...)
	n, ok := m.Int(file)
	if !ok {
		return Counter{}, false
	}
	c = Counter{Name: path.Base(file), Total: n, Looks: 1}
	at, err := m.resolve(file)
	if err != nil {
		return c, true
	}
	if after, twice := m.later[at]; twice {
		c.Rising, c.Looks = after-n, 2
	}
	return c, true
}

func (c Counter) String() string {
	s := c.Name + " " + strconv.FormatInt(c.Total, 10)
	if c.Looks == 2 && c.Rising > 0 {
		s += " (" + strconv.FormatInt(c.Rising, 10) + " of it while this was looking)"
	}
	return s
}

// counterFolders hold what counts, below a port of a card and below a network device.
var counterFolders = []string{"counters", "hw_counters", "statistics"}

// LookAgain waits, and reads all counters of ports and network devices once more. A copy has its second look in a file, or none:
// then nothing is waited for.
func (m *Machine) LookAgain(after time.Duration) {
	if !m.Live() {
		for _, line := range m.Lines(laterFile) {
			name, text, _ := strings.Cut(line, " ")
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				m.note(name, n)
			}
		}
		return
	}
	files := m.counterFiles()
	for _, f := range files {
		m.Int(f) // the first look
	}
	time.Sleep(after)
	for _, f := range files {
		text, err := m.fresh(f)
		if err != nil {
			continue // it went away, with its device
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 0, 64); err == nil {
			m.note(f, n)
		}
	}
}

func (m *Machine) note(name string, n int64) {
	if m.later == nil {
		m.later = map[string]int64{}
	}
	m.later[name] = n
}

func (m *Machine) counterFiles() (all []string) {
	var folders []string
	for _, p := range m.Ports() {
		folders = append(folders, p.Path)
	}
	for _, n := range m.NICs() {
		folders = append(folders, n.Path)
	}
	for _, f := range folders {
		for _, c := range counterFolders {
			for _, name := range m.List(f, c) {
				all = append(all, path.Join(f, c, name))
			}
		}
	}
	return all
}
