package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/release"
)

// sight is what one release of NCCL, or RCCL, finds on the machine.
type sight struct {
	r        *release.Release
	plugin   setting
	asks     []attempt // in its order
	net      *library  // the one it takes; nil: its own networks
	next     []attempt // for the communicator after a process's last, where that differs
	nextNet  *library
	profiler []attempt
	profiles *library
}

// attempt is one name given to dlopen.
type attempt struct {
	name  string
	found *library
}

// lookUp acts each release's search; RCCL's only where something of it is installed.
func (m *Machine) lookUp() ([]*sight, error) {
	all, err := release.All()
	if err != nil {
		return nil, err
	}
	var list []*sight
	for _, r := range all {
		list = append(list, m.see(r))
	}
	if m.dlopen("librccl.so.1") == nil && m.dlopen("librccl-net.so") == nil && m.dlopen("librccl-net-weft.so") == nil {
		return list, nil
	}
	for _, r := range all {
		list = append(list, m.see(r.AMD()))
	}
	return list, nil
}

func (m *Machine) see(r *release.Release) *sight {
	s := &sight{r: r, plugin: m.setting("NCCL_NET_PLUGIN", r.Code)}
	s.asks, s.net = m.search(r, r.NetNames(s.plugin.pointer()))
	if r.ForgetsName() {
		s.next, s.nextNet = m.search(r, r.NetNames(nil))
	}
	profiler := m.setting("NCCL_PROFILER_PLUGIN", r.Code)
	for _, name := range r.ProfilerNames(profiler.pointer()) {
		l := m.dlopen(name)
		s.profiler = append(s.profiler, attempt{name, l})
		if l != nil && l.broken == "" {
			s.profiles = l
			break
		}
	}
	if s.profiles == nil && r.ProfilerInNet() && !strings.EqualFold(profiler.value, "none") {
		s.profiles = s.net
	}
	if !s.profiles.has(profilerTable, r.Profiler) {
		s.profiles = nil
	}
	return s
}

// search opens the names of each plugin in turn, until one opens; the first plugin with a table of the release's is taken.
func (m *Machine) search(r *release.Release, plugins [][]string) (all []attempt, taken *library) {
	for _, names := range plugins {
		for _, name := range names {
			l := m.dlopen(name)
			all = append(all, attempt{name, l})
			if l == nil || l.broken != "" {
				continue
			}
			if l.has(netTable, r.Net) {
				return all, l
			}
			break
		}
	}
	return all, nil
}

// Row is what several releases in a row ask for and find.
type Row struct {
	Releases string
	Net      string
	Next     string // for the communicator after a process's last; empty: as the first
	Profiler string // empty: they have none
}

// Rows is what every release would do, newest last.
func (m *Machine) Rows() []Row {
	var rows []Row
	var first, last *sight
	for i, s := range m.all {
		if first == nil {
			first = s
		}
		last = s
		if i+1 < len(m.all) && m.all[i+1].r.RCCL == s.r.RCCL && slices.Equal(m.all[i+1].told(), s.told()) {
			continue
		}
		name := first.r.String()
		if first != last {
			name += " to " + last.r.Release.Release
		}
		t := s.told()
		rows = append(rows, Row{name, t[0], t[1], t[2]})
		first = nil
	}
	return rows
}

func (s *sight) told() []string {
	t := []string{told(s.asks, s.net, "NCCL's own networks"), "", ""}
	if s.r.ForgetsName() && s.nextNet.String() != s.net.String() {
		t[1] = told(s.next, s.nextNet, "NCCL's own networks, without a word")
	}
	if s.r.Profiles() {
		t[2] = told(s.profiler, s.profiles, "none")
	}
	return t
}

// told is a search in a line.
func told(asks []attempt, taken *library, otherwise string) string {
	var names []string
	for _, a := range asks {
		name := a.name
		if a.found != nil && a.found.broken != "" {
			name += " (" + a.found.broken + ")"
		}
		names = append(names, name)
	}
	if names == nil {
		names = []string{"nothing"}
	}
	what := otherwise
	if taken != nil {
		what = taken.String()
	}
	return fmt.Sprintf("asks for %s: %s", strings.Join(names, ", "), what)
}

// newest is the newest release of NCCL itself.
func (m *Machine) newest() (n *sight) {
	for _, s := range m.all {
		if !s.r.RCCL {
			n = s
		}
	}
	return n
}
