package release

import (
	"strings"

	"weft/internal/host"
)

// tuner is the process's tuner plugin.
type tuner struct {
	lib    *host.Lib
	own    bool // it was opened for this
	table  *host.Table
	refs   int
	failed bool // none is looked for any more
}

// Tunes: the release looks for tuners, and for one in the net library too where
// no tuner's library opens.
func (r *Release) Tunes() bool { return r.Code >= 22100 && len(r.Tuner) > 0 }

// TunerBorrows: the tuner in the net library is found through the network's own
// handle, which closes with the tuner, whoever still uses it; no further
// communicator finds a tuner there.
func (r *Release) TunerBorrows() bool { return r.Code >= 22600 && r.Code < 22706 }

// tune loads a tuner if there is one and initialises it for the communicator,
// when all else of it is done.
func (c *Comm) tune() error {
	p := c.P
	if !p.R.Tunes() {
		return nil
	}
	if p.tuner == nil {
		p.tuner = &tuner{}
		if err := p.tuner.load(p, c.plug); err != nil {
			return err
		}
	}
	if p.tuner.failed {
		return nil
	}
	p.tuner.refs++
	r, err := p.tuner.table.Call("main", "init", host.Args{"nranks", 2, "nnodes", 2, "commId", c.ID})
	c.tuner = r.Ptr("ctx")
	return err // it fails the communicator
}

// load finds the library and binds the newest table that the release knows.
func (t *tuner) load(p *Process, pl *plugin) error {
	t.failed = true
	names, net := p.R.TunerNames(p.o.Tuner)
	t.lib, t.own = p.open(names), true
	if t.lib == nil && net {
		if t.lib, t.own = pl.lib, false; !p.R.TunerBorrows() {
			t.lib, t.own = p.open(pl.names), true
		}
	}
	if t.lib == nil {
		return p.H.Err()
	}
	for _, v := range p.R.Tuner {
		addr, err := t.lib.Sym(host.FamilyTune.Symbol(v))
		if err != nil {
			return err
		}
		if addr != 0 {
			t.failed = false
			t.table, err = t.lib.Bind(host.FamilyTune, v, "")
			return err
		}
	}
	if t.own {
		return t.lib.Unload()
	}
	return nil
}

// untune ends the communicator's use of its tuner, before anything else of it.
func (c *Comm) untune() error {
	t := c.P.tuner
	if t == nil || t.table == nil {
		return nil
	}
	if _, err := t.table.Call("main", "finalize", host.Args{"ctx", c.tuner}); err != nil {
		return err
	}
	if t.refs--; t.refs > 0 {
		return nil
	}
	if c.P.tuner = nil; !t.own {
		c.P.tuner = &tuner{failed: true}
	}
	return t.lib.Unload()
}

// TunerNames are the names given to dlopen for the tuner, and whether the net
// library is asked where none opens. value is NCCL_TUNER_PLUGIN, nil when it is
// not set. RCCL has NCCL's names.
func (r *Release) TunerNames(value *string) (names []string, net bool) {
	const pre = "libnccl-tuner"
	switch {
	case !r.Tunes():
		return nil, false
	case value == nil || *value == "":
		return []string{pre + ".so"}, true
	case r.Code >= 22800 && strings.EqualFold(*value, "none"):
		return nil, false
	case r.Code < 22700:
		return []string{*value, pre + "-" + *value + ".so"}, true
	}
	return r.names(pre, *value), true
}
