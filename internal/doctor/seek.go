package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/release"
)

// sight is what one release of NCCL, or RCCL, finds on the machine.
type sight struct {
	r        *release.Release
	plugin   machine.Setting
	asks     []attempt        // in its order
	net      *machine.Library // the one it takes; nil: its own networks
	next     []attempt        // for the communicator after a process's last, where that differs
	nextNet  *machine.Library
	profiler []attempt
	profiles *machine.Library
	tuner    []attempt
	tunes    *machine.Library
}

// attempt is one name given to dlopen.
type attempt struct {
	name  string
	found *machine.Library
}

// lookUp acts each release's search; RCCL's only where something of it is installed.
func (x *Exam) lookUp() ([]*sight, error) {
	all, err := release.All()
	if err != nil {
		return nil, err
	}
	var list []*sight
	for _, r := range all {
		list = append(list, x.see(r))
	}
	if x.Dlopen("librccl.so.1") == nil && x.Dlopen("librccl-net.so") == nil && x.Dlopen("librccl-net-weft.so") == nil {
		return list, nil
	}
	for _, r := range all {
		list = append(list, x.see(r.AMD()))
	}
	return list, nil
}

func (x *Exam) see(r *release.Release) *sight {
	s := &sight{r: r, plugin: x.Setting("NCCL_NET_PLUGIN", r.Code)}
	s.asks, s.net = x.search(r, r.NetNames(s.plugin.Pointer()))
	if r.ForgetsName() {
		s.next, s.nextNet = x.search(r, r.NetNames(nil))
	}
	profiler := x.Setting("NCCL_PROFILER_PLUGIN", r.Code)
	for _, name := range r.ProfilerNames(profiler.Pointer()) {
		l := x.Dlopen(name)
		s.profiler = append(s.profiler, attempt{name, l})
		if l != nil && l.Broken == "" {
			s.profiles = l
			break
		}
	}
	if s.profiles == nil && r.ProfilerInNet() && !strings.EqualFold(profiler.Value, "none") {
		s.profiles = s.net
	}
	if !s.profiles.Has(machine.ProfilerTable, r.Profiler) {
		s.profiles = nil
	}
	x.seekTuner(s)
	return s
}

// seekTuner fills in the tuner's part: the first name that opens is the library, else the one of the network.
func (x *Exam) seekTuner(s *sight) {
	names, inNet := s.r.TunerNames(x.Setting("NCCL_TUNER_PLUGIN", s.r.Code).Pointer())
	for _, name := range names {
		l := x.Dlopen(name)
		s.tuner = append(s.tuner, attempt{name, l})
		if l != nil && l.Broken == "" {
			s.tunes = l
			break
		}
	}
	if s.tunes == nil && inNet {
		s.tunes = s.net
	}
	if !s.tunes.Has(machine.TunerTable, s.r.Tuner) {
		s.tunes = nil
	}
}

// search opens the names of each plugin in turn, until one opens; the first plugin with a table of the release's is taken.
func (x *Exam) search(r *release.Release, plugins [][]string) (all []attempt, taken *machine.Library) {
	for _, names := range plugins {
		for _, name := range names {
			l := x.Dlopen(name)
			all = append(all, attempt{name, l})
			if l == nil || l.Broken != "" {
				continue
			}
			if l.Has(machine.NetTable, r.Net) {
				return all, l
			}
			break
		}
	}
	return all, nil
}

// Row is what several releases in a row ask for and find.
type Row struct {
	Releases string `json:"releases" doc:"of NCCL or RCCL, first to last"`
	Net      string `json:"network" doc:"the names that they give to dlopen for a network plugin, and what that finds"`
	Next     string `json:"later,omitempty" doc:"the same for the communicator after a process's last; absent: as the first"`
	Profiler string `json:"profiler,omitempty" doc:"the same for the profiler; absent: they have none"`
	Tuner    string `json:"tuner,omitempty" doc:"the same for the tuner; absent: they have none"`
}

// Rows is what every release would do, newest last.
func (x *Exam) Rows() []Row {
	var rows []Row
	var first, last *sight
	for i, s := range x.all {
		if first == nil {
			first = s
		}
		last = s
		if i+1 < len(x.all) && x.all[i+1].r.RCCL == s.r.RCCL && slices.Equal(x.all[i+1].told(), s.told()) {
			continue
		}
		name := first.r.String()
		if first != last {
			name += " to " + last.r.Release.Release
		}
		t := s.told()
		rows = append(rows, Row{name, t[0], t[1], t[2], t[3]})
		first = nil
	}
	return rows
}

func (s *sight) told() []string {
	t := []string{told(s.asks, s.net, "NCCL's own networks"), "", "", ""}
	if s.r.ForgetsName() && s.nextNet.String() != s.net.String() {
		t[1] = told(s.next, s.nextNet, "NCCL's own networks, without a word")
	}
	if s.r.Profiles() {
		t[2] = told(s.profiler, s.profiles, "none")
	}
	if s.r.Tunes() {
		t[3] = told(s.tuner, s.tunes, "NCCL's own choices")
	}
	return t
}

// told is a search in a line.
func told(asks []attempt, taken *machine.Library, otherwise string) string {
	var names []string
	for _, a := range asks {
		name := a.name
		if a.found != nil && a.found.Broken != "" {
			name += " (" + a.found.Broken + ")"
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
func (x *Exam) newest() (n *sight) {
	for _, s := range x.all {
		if !s.r.RCCL {
			n = s
		}
	}
	return n
}
