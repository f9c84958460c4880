package release

import (
	"weft/internal/host"
)

// profiler is the process's profiler plugin.
type profiler struct {
	lib   *host.Lib
	table *host.Table
	refs  int
}

// profile loads a profiler if there is one and initialises it for the communicator.
func (c *Comm) profile() error {
	p := c.P
	if !p.R.Profiles() {
		return nil
	}
	if p.prof == nil {
		p.prof = &profiler{}
		p.prof.lib = p.open(p.R.ProfilerNames(p.o.Profiler))
		none := p.o.Profiler != nil && p.R.ProfilerNames(p.o.Profiler) == nil
		if p.prof.lib == nil && p.R.ProfilerInNet() && !none {
			p.prof.lib = p.open(c.plug.names) // raises the net library's count
		}
		if err := p.prof.bind(p.R); err != nil {
			return err
		}
	}
	if p.prof.table == nil {
		return nil
	}
	p.prof.refs++
	r, err := p.prof.table.Call("main", "init", host.Args{"mask", 0, "name", "world", "commId", c.ID, "nranks", 2, "rank", 0, "nnodes", 2})
	if host.Code(err) == host.HostError {
		return err
	}
	c.prof = r.Ptr("ctx")
	return nil // NCCL goes on without a profiler when init fails
}

func (f *profiler) bind(r *Release) error {
	if f.lib == nil {
		return nil
	}
	for _, v := range r.Profiler {
		addr, err := f.lib.Sym(host.FamilyProf.Symbol(v))
		if err != nil {
			return err
		}
		if addr != 0 {
			f.table, err = f.lib.Bind(host.FamilyProf, v, "")
			return err
		}
	}
	return f.lib.Unload()
}

// unprofile finalizes the communicator's profiler context, before the net's.
func (c *Comm) unprofile() error {
	f := c.P.prof
	if f == nil || f.table == nil {
		return nil
	}
	if _, err := f.table.Call("main", "finalize", host.Args{"ctx", c.prof}); err != nil {
		return err
	}
	if f.refs--; f.refs > 0 {
		return nil
	}
	c.P.prof = nil
	return f.lib.Unload()
}
