package conform

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/internal/host"
)

// Env is what one run of one rule works with: the plugin, the table version and
// the processes that it started. A step that fails ends the script.
type Env struct {
	o       *Options
	version int
	procs   []*proc
}

type failure struct{ text string }
type skip struct{ why string }

func (e *Env) failf(format string, a ...any) { panic(&failure{fmt.Sprintf(format, a...)}) }
func (e *Env) skipf(format string, a ...any) { panic(&skip{fmt.Sprintf(format, a...)}) }

// must ends the script when a step that has to succeed did not.
func (e *Env) must(err error, what string) {
	if err == nil {
		return
	}
	if d := (*host.DeathError)(nil); errors.As(err, &d) {
		e.failf("%s: %s", what, brief(d))
	}
	e.failf("%s: %v", what, err)
}

// brief is a death in one line.
func brief(d *host.DeathError) string {
	s, _, _ := strings.Cut(d.Error(), "; stderr:")
	if d.Stderr != "" {
		lines := strings.Split(strings.TrimSpace(d.Stderr), "\n")
		s += "; stderr ends: " + lines[len(lines)-1]
	}
	return s
}

// alive fails when err means that the process is gone or did not come back.
func (e *Env) alive(err error, what string) {
	var d *host.DeathError
	var c *host.CommandError
	if errors.As(err, &d) || errors.As(err, &c) {
		e.must(err, what)
	}
}

// proc is one NCCL process with the table bound.
type proc struct {
	e    *Env
	name string
	h    *host.Host
	lib  *host.Lib
	net  *host.Net
	ndev int
}

// start starts a process with no plugin in it.
func (e *Env) start(name string, env ...string) *proc {
	h, err := host.Start(host.Options{Bin: e.o.Host, Name: name, Deadline: e.o.Patience, Log: e.o.Log, Env: append(append([]string{}, e.o.Env...), env...)})
	e.must(err, "start of the host process")
	p := &proc{e: e, name: name, h: h}
	e.procs = append(e.procs, p)
	return p
}

// open starts a process, loads the library and binds the table; nothing is called yet.
func (e *Env) open(name string, env ...string) *proc {
	p := e.start(name, env...)
	p.load()
	return p
}

func (p *proc) load() {
	var err error
	p.lib, err = p.h.Load(p.e.o.Lib)
	p.e.must(err, "dlopen")
	p.net, err = p.lib.BindNet(p.e.version)
	p.e.must(err, "look up of the table")
}

// proc is open and init.
func (e *Env) proc(name string, env ...string) *proc {
	p := e.open(name, env...)
	p.init()
	return p
}

func (p *proc) init(extra ...any) {
	p.e.must(p.net.Init(extra...), "init")
	n, err := p.net.Devices()
	p.e.must(err, "devices")
	p.ndev = n
}

// two starts a sender's and a receiver's process.
func (e *Env) two() (tx, rx *proc) { return e.proc("sender"), e.proc("receiver") }

func (e *Env) close() {
	for _, p := range e.procs {
		if p.h.Err() == nil {
			p.h.Kill()
		}
	}
}

// buf is memory whose end lies at a page that nobody may touch.
type buf struct {
	p    *proc
	addr host.Ptr
	size int64
}

func (p *proc) buf(size int64) *buf {
	a, err := p.h.AllocGuarded(size)
	p.e.must(err, "memory of the host")
	return &buf{p, a, size}
}

func (b *buf) fill(seed uint64)    { b.p.e.must(b.p.h.Fill(b.addr, b.size, seed), "fill") }
func (b *buf) fillByte(c byte)     { b.p.e.must(b.p.h.FillByte(b.addr, b.size, c), "fill") }
func (b *buf) at(off int64) *buf   { return &buf{b.p, b.addr + host.Ptr(off), b.size - off} }
func (b *buf) cut(size int64) *buf { return &buf{b.p, b.addr, size} }

// holds fails unless b begins with the first size bytes of seed's pattern.
func (b *buf) holds(size int64, seed uint64, what string) {
	if size > 0 {
		b.p.e.must(b.p.h.Check(b.addr, size, seed), what)
	}
}

// untouched fails unless every byte is still c.
func (b *buf) untouched(c byte, what string) {
	if b.size > 0 {
		b.p.e.must(b.p.h.CheckByte(b.addr, b.size, c), what)
	}
}

// call is a slot call with raw arguments; it fails only when the process is gone.
func (p *proc) call(thread, slot string, a host.Args) (*host.Reply, error) {
	r, err := p.net.Table.Call(thread, slot, a)
	p.e.alive(err, slot)
	return r, err
}

// until repeats step until it says so, or fails after the patience (longer for bytes on their way).
func (e *Env) until(bytes int64, what string, step func() bool) {
	limit := e.o.Patience + time.Duration(bytes/(16<<20))*time.Second
	if !e.within(limit, step) {
		e.failf("%s: not within %v", what, limit)
	}
}

// within calls step until it reports true, or the limit is over. A step that goes on
// for long may hang: it is repeated less and less often, as weft-host does, and leaves the cores to others.
func (e *Env) within(limit time.Duration, step func() bool) bool {
	for begin := time.Now(); !step(); {
		gone := time.Since(begin)
		if gone > limit {
			return false
		}
		if gone > pollFreely {
			time.Sleep(min(gone/50, time.Millisecond))
		}
	}
	return true
}

const pollFreely = 10 * time.Millisecond // most steps are over by then
