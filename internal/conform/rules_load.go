package conform

import (
	"strings"

	"weft/internal/host"
)

// Slots that every table of a version must fill; what is absent here may be NULL.
var netSlots = []struct {
	from, to int
	names    string
}{
	{2, 0, "init devices listen connect accept regMr deregMr isend irecv test closeSend closeRecv closeListen"},
	{2, 2, "pciPath ptrSupport"},
	{3, 0, "getProperties"},
	{2, 3, "flush"},
	{4, 0, "iflush"},
	{11, 0, "finalize"},
}

var loadRules = []*Rule{
	{ID: "table.name", Says: "name is there before init: NCCL compares it with NCCL_NET and logs it straight after dlsym",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.open("process")
			if n := p.net.Name; n == "" || n == "(null)" {
				e.failf("name is %q when the library has just been opened", n)
			}
		}},
	{ID: "table.slots", Gate: true, Says: "all slots are set but regMrDmaBuf, getDeviceMr, irecvConsumed, makeVDevice and setNetAttr, which may be NULL",
		Basis: basisProxy, Check: func(e *Env) {
			p := e.open("process")
			var missing []string
			for _, s := range netSlots {
				if e.version < s.from || s.to != 0 && e.version > s.to {
					continue
				}
				for _, n := range strings.Fields(s.names) {
					if !p.net.Slots[n] {
						missing = append(missing, n)
					}
				}
			}
			if missing != nil {
				e.failf("NULL: %s", strings.Join(missing, ", "))
			}
		}},
	{ID: "net.init", Gate: true, Says: "init succeeds where a device is usable",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.open("process")
			e.must(p.net.Init(), "init")
		}},
	{ID: "net.devices", Gate: true, Says: "after init there is at least one device: without any, init must fail",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.open("process")
			e.must(p.net.Init(), "init")
			n, err := p.net.Devices()
			e.must(err, "devices")
			if n <= 0 {
				e.failf("init succeeded but devices says %d", n)
			}
		}},
	{ID: "net.devices.same", Says: "the number of devices does not change: NCCL asks again for every communicator",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			n, err := p.net.Devices()
			e.must(err, "devices")
			if n != p.ndev {
				e.failf("%d devices at first, then %d", p.ndev, n)
			}
		}},
	{ID: "init.repeat", Says: "init may come again in the process (a second communicator from v11 on, a second loader before) and both work",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			first := p.net.Ctx
			e.must(p.net.Init("commId", 2), "second init")
			l := e.join(p, p, 0)
			l.move(1000, 1)
			p.net.Ctx = first
			e.join(p, p, 0).move(1000, 2)
		}},
	{ID: "init.reload", Says: "after dlclose, dlopen and init the plugin works again",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			e.must(p.net.Finalize(), "finalize")
			e.must(p.lib.Unload(), "dlclose")
			p.load()
			p.init()
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "init.reload.bare", From: 5, To: 8, Says: "NCCL 2.22 and 2.23 dlclose and dlopen the library and go on without another init; the plugin works then too",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			e.must(p.lib.Unload(), "dlclose")
			p.load()
			e.join(p, p, 0).move(1000, 1)
		}},
	{ID: "log.calls", Says: "the logger gets a known level, a file or function, a format, and text without line ends",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.proc("process")
			l := e.join(p, p, 0)
			l.move(1000, 1)
			p.provoke()
			for _, x := range p.h.Logs() {
				if x.Level < 1 || x.Level > 5 || x.Func == "" || x.Func == "(null)" || x.Text == "" || strings.Contains(x.Text, "\n") {
					e.failf("level %d, function %q, text %q", x.Level, x.Func, x.Text)
				}
			}
		}},
	{ID: "log.warn", Care: true, Says: "a call that fails says why with a WARN to the logger",
		Basis: basisDoc, Check: func(e *Env) {
			p := e.proc("process")
			if rc := p.provoke(); rc == host.Success {
				e.skipf("no call could be made to fail")
			}
			for _, x := range p.h.Logs() {
				if x.Level == 2 {
					return
				}
			}
			e.failf("getProperties and listen failed on a device that does not exist, and no WARN came")
		}},
}

// provoke makes a call fail and returns its code.
func (p *proc) provoke() host.Result {
	_, err := p.call("main", "props", host.Args{"dev", p.ndev + 7})
	if host.Code(err) == host.Success {
		h := p.buf(256)
		_, err = p.call(p.net.Setup, "listen", host.Args{"ctx", p.net.Ctx, "dev", p.ndev + 7, "handle", h.addr})
	}
	return host.Code(err)
}
