package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/link"
)

const pluginTopic = "Plugins"

const plainName = "libnccl-net.so"

// pluginRules: which library NCCL takes for its network.
var pluginRules = []Rule{
	{
		Code: "WEFT-001", Topic: pluginTopic, Severity: Breaks,
		Title:       "NCCL_NET_PLUGIN=none keeps every plugin out",
		Symptom:     "the log says `NET/Socket` or `NET/IB` and never weft",
		Consequence: "NCCL from 2.28 on loads no plugin; 2.11 to 2.27 look for one of that name; none uses weft",
		check: func(x *Exam) []Finding {
			s := x.newest().plugin
			if !strings.EqualFold(s.Value, "none") {
				return nil
			}
			return seen("NCCL_NET_PLUGIN", "NCCL_NET_PLUGIN=%s (%s)", s.Value, s.From).mend("%s, then export NCCL_NET_PLUGIN=weft", s.Undo).one()
		},
	},
	{
		Code: "WEFT-002", Topic: pluginTopic, Severity: Breaks,
		Title:       "the newest NCCL finds no network plugin",
		Symptom:     "`NET/Plugin: Could not find: libnccl-net.so`",
		Consequence: "NCCL goes over its own networks, or fails where NCCL_NET=weft is set",
		check:       missing,
	},
	{
		Code: "WEFT-003", Topic: pluginTopic, Severity: Breaks,
		Title:   "another plugin has the name that NCCL asks for by itself",
		Symptom: "some jobs or some nodes use another plugin (HPC-X, aws-ofi-nccl) than the rest",
		Consequence: "NCCL up to 2.10 takes it always, 2.28 and 2.29 for every communicator after a process's last has ended, all others where " +
			"NCCL_NET_PLUGIN is not set",
		check: otherPlugin,
	},
	{
		Code: "WEFT-004", Topic: pluginTopic, Severity: Breaks,
		Title:   "weft is installed without the link by which NCCL asks for it",
		Symptom: "a process's second communicator goes over NCCL's own network, and nothing says so",
		Consequence: "NCCL and RCCL 2.28 and 2.29 forget NCCL_NET_PLUGIN when a process's last communicator ends: the next one asks for the plain name, " +
			"does not find it, and goes over NCCL's own network without a word (or fails, where NCCL_NET=weft is set); up to 2.10 no release finds weft",
		check: missingLinks,
	},
	{
		Code: "WEFT-005", Topic: pluginTopic, Severity: Breaks,
		Title:       "a file has a name that NCCL gives to dlopen, and is no library that can be loaded",
		Symptom:     "`cannot dynamically load executable`, `file too short`, `invalid ELF header`",
		Consequence: "dlopen fails there and looks no further: NCCL goes on with the next name, or with its own networks",
		check: func(x *Exam) (all []Finding) {
			for _, l := range x.brokenOnes() {
				f := seen(l.Path, "%v", l).mend("install it anew: %s", l.Path)
				if path.Base(l.Path) == "weft" {
					f = f.mend("take %s out of LD_LIBRARY_PATH: programs and libraries have folders of their own", path.Dir(l.Path))
				}
				all = append(all, f)
			}
			return all
		},
	},
	{
		Code: "WEFT-006", Topic: pluginTopic, Severity: Breaks,
		Title:       "NCCL_NET asks for another network than weft",
		Symptom:     "weft's first lines are in the log, and the job runs over `NET/Socket` or `NET/IB`",
		Consequence: "weft is loaded and not used, from NCCL 2.11 on",
		check: func(x *Exam) []Finding {
			s := x.set("NCCL_NET")
			if s.Value == "" || strings.EqualFold(s.Value, "weft") || !x.newest().net.Weft() {
				return nil
			}
			return seen("NCCL_NET", "NCCL_NET=%s (%s)", s.Value, s.From).with("NCCL_NET", "weft").mend("%s, or export NCCL_NET=weft", s.Undo).one()
		},
	},
	{
		Code: "WEFT-009", Topic: pluginTopic, Severity: Slows,
		Title:       "a tuner of another comes before weft's",
		Symptom:     "`TUNER/Plugin: Using tuner plugin ...` names another than weft",
		Consequence: "NCCL takes the first tuner that opens: weft's, which keeps NCCL from choices that do not suit it, is not asked",
		check: func(x *Exam) []Finding {
			s := x.newest()
			if !s.net.Weft() || s.tunes == nil || s.tunes.Weft() {
				return nil
			}
			f := seen(s.tunes.Path, "%v asks for %s and finds %v", s.r, names(s.tuner), s.tunes)
			if set := x.set("NCCL_TUNER_PLUGIN"); set.From != "" {
				return f.mend("%s (it is %s, by %s)", set.Undo, set.Value, set.From).one()
			}
			return f.with("NCCL_TUNER_PLUGIN", link.Name).mend("export NCCL_TUNER_PLUGIN=%s, or take %s away", link.Name, s.tunes.Path).one()
		},
	},
	{
		Code: "WEFT-010", Topic: pluginTopic, Severity: Slows,
		Title:       "WEFT_PROFILE is set, and NCCL takes the profiler of another",
		Symptom:     "no file of a trace appears, though WEFT_PROFILE is set",
		Consequence: "NCCL loads one profiler: weft hears of no event and records nothing",
		check: func(x *Exam) []Finding {
			s := x.newest()
			if x.set("WEFT_PROFILE").Value == "" || !s.net.Weft() || s.profiles.Weft() {
				return nil
			}
			found := "none"
			if s.profiles != nil {
				found = s.profiles.String()
			}
			f := seen("NCCL_PROFILER_PLUGIN", "%v asks for %s and takes %s", s.r, names(s.profiler), found)
			if s.profiles == nil {
				return f.with("NCCL_PROFILER_PLUGIN", "").mend("unset NCCL_PROFILER_PLUGIN").one()
			}
			return f.with("NCCL_PROFILER_PLUGIN", link.Name).with("WEFT_PROFILER_CHAIN", s.profiles.Path).
				mend("export NCCL_PROFILER_PLUGIN=%s WEFT_PROFILER_CHAIN=%s: weft hands every event on", link.Name, s.profiles.Path).one()
		},
	},
}

// names are those that were given to dlopen.
func names(asks []attempt) string {
	var all []string
	for _, a := range asks {
		all = append(all, a.name)
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, " and ")
}

// installed is weft under its own name, where the loader looks.
func (x *Exam) installed() *machine.Library {
	if l := x.Dlopen(link.Name); l.Weft() {
		return l
	}
	return nil
}

func missing(x *Exam) []Finding {
	s := x.newest()
	if s.net != nil || strings.EqualFold(s.plugin.Value, "none") || len(x.brokenOnes()) > 0 {
		return nil
	}
	set := "NCCL_NET_PLUGIN is not set"
	if s.plugin.From != "" {
		set = fmt.Sprintf("NCCL_NET_PLUGIN=%s (%s)", s.plugin.Value, s.plugin.From)
	}
	f := seen(s.r.String(), "%s; %s%s", set, names(s.asks), x.notThere())
	weft := x.installed()
	if weft == nil {
		return f.mend("export LD_LIBRARY_PATH=FOLDER:$LD_LIBRARY_PATH NCCL_NET_PLUGIN=weft, FOLDER being where %s is (dist/lib, after make)", link.Name).one()
	}
	f.Evidence += "; weft is at " + weft.Path
	undo := ""
	if s.plugin.From != "" && s.plugin.From != "the environment" {
		undo = s.plugin.Undo + ", then "
	}
	return f.mend("%sexport NCCL_NET_PLUGIN=weft", undo).one()
}

// notThere says where it was looked for in vain.
func (x *Exam) notThere() string {
	where := "the loader's cache and folders"
	if dirs := x.Searched(); len(dirs) > 0 {
		where = "LD_LIBRARY_PATH (" + strings.Join(dirs, ", ") + "), " + where
	}
	return " not in " + where
}

func otherPlugin(x *Exam) []Finding {
	weft, plain := x.installed(), x.Dlopen(plainName)
	if weft == nil || plain == nil || plain.Broken != "" || plain.Weft() {
		return nil
	}
	f := seen(plain.Path, "%s comes first as %s; weft is %s", plain.Path, plainName, weft.Path)
	remedy := fmt.Sprintf("ln -sf %s %s/%s, and export LD_LIBRARY_PATH=%[2]s:$LD_LIBRARY_PATH", link.Name, path.Dir(weft.Path), plainName)
	if path.Dir(plain.Path) == path.Dir(weft.Path) {
		remedy = "install weft into a folder of its own, with its links, and put that first in LD_LIBRARY_PATH"
	}
	if s := x.newest(); !s.net.Weft() && s.plugin.From == "" {
		remedy += "; export NCCL_NET_PLUGIN=weft"
	}
	if dir := path.Dir(weft.Path); x.Dlopen(path.Join(dir, plainName)).Weft() && !slices.Contains(machine.LibraryFolders(), dir) {
		f = f.with("LD_LIBRARY_PATH", x.First(dir)) // the loader's own folders would come before others of whoever set it
	}
	return f.mend("%s", remedy).one()
}

// links are the names that each need a link beside the library.
var links = []struct{ name, needs string }{
	{plainName, link.Name},
	{"librccl-net.so", "librccl-net-weft.so"},
}

// archiveLinks is the folder beside the library in which the archive has the links that every NCCL opens (tools/packages).
const archiveLinks = "default"

func missingLinks(x *Exam) (all []Finding) {
	for _, l := range links {
		weft := x.Dlopen(l.needs)
		if !weft.Weft() || x.Dlopen(l.name) != nil {
			continue
		}
		f := seen(l.name, "%s is there; %s%s", weft.Path, l.name, x.notThere())
		if dir := path.Join(path.Dir(weft.Path), archiveLinks); x.Exists(dir, l.name) {
			all = append(all, f.export("LD_LIBRARY_PATH", x.First(dir)))
			continue
		}
		all = append(all, f.mend("ln -s %s %s/%s", path.Base(weft.Path), path.Dir(weft.Path), l.name))
	}
	return all
}

// brokenOnes are the files that a search met and that cannot be loaded, each once.
func (x *Exam) brokenOnes() (all []*machine.Library) {
	for _, s := range x.all {
		for _, a := range slices.Concat(s.asks, s.next, s.profiler, s.tuner) {
			if l := a.found; l != nil && l.Broken != "" && !slices.ContainsFunc(all, func(o *machine.Library) bool { return o.Path == l.Path }) {
				all = append(all, l)
			}
		}
	}
	return all
}
