package conform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/host"
)

// Options say what is judged and how long a call may take.
type Options struct {
	Lib      string             // the plugin
	Host     string             // the weft-host program
	Env      []string           // for the host processes
	Tables   []int              // net tables to judge; empty: all that Lib exports
	Rules    []string           // ids or prefixes ending in "."; empty: all
	Slow     bool               // with the 1 GiB rule
	Strict   bool               // a Care rule that fails counts as failure
	Patience time.Duration      // a call that takes longer hangs; default 10 s
	Report   func(Outcome)      // every outcome as it comes
	Note     func(string)       // what limits the verdict: a table that is newer than what is known of tables; may be nil
	Log      func(host.LogLine) // every line that the plugin logs, from several processes at once; must not block
}

// Outcome is what one rule found on one table.
type Outcome struct {
	Lib     string // the plugin's file name
	Family  host.Family
	Version int // 0: the library as a whole
	Rule    *Rule
	Fail    string // what was wrong
	Skip    string // why it was not judged
	Took    time.Duration
}

// OK tells whether the rule holds or does not concern the plugin.
func (o *Outcome) OK() bool { return o.Fail == "" }

// Run judges a library and returns all outcomes. The error is for runs that
// could not take place, never for what the plugin does.
func Run(o Options) ([]Outcome, error) {
	o.fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &runner{o: &o}
	tables, err := r.library()
	if err != nil {
		return r.out, err
	}
	for _, f := range host.Families() {
		for _, v := range tables[f] {
			r.table(f, v)
		}
	}
	return r.out, nil
}

// Judge judges one table, which the library must export.
func Judge(o Options, f host.Family, version int) []Outcome {
	o.fill()
	r := &runner{o: &o}
	r.table(f, version)
	return r.out
}

func (o *Options) fill() {
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
}

func rulesOf(f host.Family) []*Rule {
	switch f {
	case host.FamilyColl:
		return CollRules()
	case host.FamilyProf:
		return profRules
	case host.FamilyTune:
		return tuneRules
	}
	return NetRules()
}

type runner struct {
	o   *Options
	out []Outcome
}

func (r *runner) report(o Outcome) {
	o.Lib = filepath.Base(r.o.Lib)
	r.out = append(r.out, o)
	if r.o.Report != nil {
		r.o.Report(o)
	}
}

func (r *runner) wanted(id string) bool {
	return len(r.o.Rules) == 0 || slices.ContainsFunc(r.o.Rules, func(w string) bool { return names(w, id) })
}

// names tells whether a word asks for a rule: by its id, or by a part that ends in ".".
func names(w, id string) bool {
	return w == id || strings.HasSuffix(w, ".") && strings.HasPrefix(id, w)
}

// check refuses words that ask for no rule.
func (o *Options) check() error {
	for _, w := range o.Rules {
		if !slices.ContainsFunc(AllRules(), func(r *Rule) bool { return names(w, r.ID) }) {
			return fmt.Errorf("there is no rule %s", w)
		}
	}
	return nil
}

// table runs the rules of a table; after a failed gate the rest is skipped.
func (r *runner) table(f host.Family, version int) {
	gate := ""
	for _, rule := range rulesOf(f) {
		if !rule.Applies(version) || !(r.wanted(rule.ID) || rule.Gate) || rule.Slow && !r.o.Slow {
			continue
		}
		o := Outcome{Family: f, Version: version, Rule: rule}
		if gate != "" {
			o.Skip = "cannot be judged: " + gate + " failed"
		} else {
			r.judge(&o)
		}
		if !o.OK() && rule.Gate {
			gate = rule.ID
		}
		r.report(o)
	}
}

// judge runs one check in processes of its own.
func (r *runner) judge(o *Outcome) {
	e := &Env{o: r.o, version: o.Version}
	start := time.Now()
	defer func() {
		switch f := recover().(type) {
		case nil:
		case *failure:
			o.Fail = f.text
		case *skip:
			o.Skip = f.why
		default:
			panic(f)
		}
		o.Took = time.Since(start)
		e.close()
	}()
	o.Rule.Check(e)
}

// library judges what concerns the file, and finds its tables.
func (r *runner) library() (map[host.Family][]int, error) {
	found := map[host.Family][]int{}
	probe := &Env{o: r.o}
	defer probe.close()
	h, err := host.Start(host.Options{Bin: r.o.Host, Name: "probe", Deadline: r.o.Patience, Env: r.o.Env, Log: r.o.Log})
	if err != nil {
		return nil, err
	}
	probe.procs = append(probe.procs, &proc{e: probe, h: h})
	lib, err := h.Load(r.o.Lib)
	o := Outcome{Family: host.FamilyNet, Rule: ruleLoad}
	if err != nil {
		o.Fail = err.Error()
		r.report(o)
		return found, nil
	}
	r.report(o)
	for _, f := range host.Families() {
		if found[f], err = lib.Tables(f); err != nil {
			return nil, err
		}
	}
	o = Outcome{Family: host.FamilyNet, Rule: ruleTables}
	if len(found[host.FamilyNet]) == 0 {
		first, last := host.FamilyNet.Versions()
		o.Fail = fmt.Sprintf("the library exports no ncclNetPlugin_v%d..v%d", first, last)
	}
	r.report(o)
	if err := r.unwitnessed(lib, found); err != nil {
		return nil, err
	}
	if len(r.o.Tables) > 0 && o.OK() {
		for _, v := range r.o.Tables {
			if !slices.Contains(found[host.FamilyNet], v) {
				return nil, fmt.Errorf("%s does not export %s", r.o.Lib, host.FamilyNet.Symbol(v))
			}
		}
		found = map[host.Family][]int{host.FamilyNet: r.o.Tables}
	}
	return found, nil
}

// unwitnessed notes tables whose header is newer than what the host calls by hand.
func (r *runner) unwitnessed(lib *host.Lib, found map[host.Family][]int) error {
	for _, f := range host.Families() {
		for _, v := range found[f] {
			if f.Witnessed(v) || r.o.Note == nil || len(r.o.Tables) > 0 && (f != host.FamilyNet || !slices.Contains(r.o.Tables, v)) {
				continue
			}
			table, err := lib.Bind(f, v, "")
			if err != nil {
				return err
			}
			r.o.Note(table.Unwitnessed())
		}
	}
	return nil
}

var (
	ruleLoad = &Rule{ID: "lib.load", Gate: true, Basis: basisLoader,
		Says: "the library opens with RTLD_NOW | RTLD_LOCAL: every symbol that it needs is there"}
	ruleTables = &Rule{ID: "lib.tables", Gate: true, Basis: basisLoader,
		Says: "the library exports at least one table ncclNetPlugin_vN; NCCL drops one without"}
)
