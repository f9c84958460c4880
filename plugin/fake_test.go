package plugin

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport"
	"weft/transport/device"
	"weft/transport/meter"
	"weft/transport/rdma"
	"weft/transport/record"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/tuner"
)

// What lines are looked for by: the numbers of NCCL.
var levelWarn, levelInfo = ncclLevels[warn], ncclLevels[info]

// fakeHost is a process with modules that can go away and a log that is kept.
type fakeHost struct {
	env    map[string]string
	thread int // that calls

	mu      sync.Mutex
	modules map[uintptr]module      // protected by mu
	said    []said                  // protected by mu
	strings []string                // protected by mu
	hints   map[uintptr]abi.NetAttr // protected by mu
	noHints error                   // of KeepHints

	chain     []string // libraries of profilers that were opened
	begun     []uint16 // communicators that they know
	noChain   error    // of BeginChained
	forgotten uint64   // events that had not ended

	requests fakeRequests
	vetoes   []tuner.Vetoes // that were kept
	dropped  []uintptr
	full     bool // no more are
}

type said struct {
	logger uintptr
	level  int32
	flags  uint64
	file   string
	line   int
	text   string
}

func (h *fakeHost) Getenv(name string) (string, bool) { v, ok := h.env[name]; return v, ok }

func (h *fakeHost) Thread() int { return h.thread }

func (h *fakeHost) SignalStacks() []int { return nil }

func (h *fakeHost) Environ() []string {
	var all []string
	for k, v := range h.env {
		all = append(all, k+"="+v)
	}
	return all
}

func (h *fakeHost) Module(address uintptr) module {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.modules[address]
}

func (h *fakeHost) Exports(address uintptr, symbol string) bool {
	switch name := h.Module(address).name; symbol {
	case "ncclCommGetUniqueHash":
		return name == "libncclx.so"
	case "ncclAllToAllv":
		return strings.Contains(name, "librccl")
	case "ncclCommDump":
		return name == "librccl.so.1.0" || name == "libncclx.so"
	}
	return false
}

func (h *fakeHost) Log(logger uintptr, level int32, flags uint64, file string, line int, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, said{logger, level, flags, file, line, text})
}

func (h *fakeHost) CString(s string) *byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strings = append(h.strings, s)
	b := append([]byte(s), 0)
	return &b[0]
}

func (h *fakeHost) StepEvents(callback uintptr) uintptr { return callback }

func (h *fakeHost) OpenProfiler(library string, table int) (name string, version int, err error) {
	if strings.HasPrefix(library, "missing") {
		return "", 0, errors.New("no such file")
	}
	h.chain = append(h.chain, library)
	return "one of " + library, table - 1, nil
}

func (h *fakeHost) BeginChained(comm uint16, _ int32, _ *abi.ProfilerInitArgs) error {
	h.begun = append(h.begun, comm)
	return h.noChain
}

func (h *fakeHost) ChainForgotten() uint64 { return h.forgotten }

func (h *fakeHost) KeepVetoes(v *tuner.Vetoes) uintptr {
	if h.full {
		return 0
	}
	h.vetoes = append(h.vetoes, *v)
	return uintptr(len(h.vetoes))
}

func (h *fakeHost) DropVetoes(set uintptr) { h.dropped = append(h.dropped, set) }

func (h *fakeHost) Files() (soft, hard uint64) { return 0, 0 }

func (h *fakeHost) KeepHints(ctx uintptr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hints == nil {
		h.hints = map[uintptr]abi.NetAttr{}
	}
	h.hints[ctx] = abi.NetAttr{}
	return h.noHints
}

func (h *fakeHost) DropHints(ctx uintptr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hints, ctx)
}

func (h *fakeHost) Hints(ctx uintptr) abi.NetAttr {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hints[ctx]
}

// lines are those of a level that contain every part.
func (h *fakeHost) lines(level int32, parts ...string) []said {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []said
lines:
	for _, s := range h.said {
		if s.level != level {
			continue
		}
		for _, p := range parts {
			if !strings.Contains(s.text, p) {
				continue lines
			}
		}
		found = append(found, s)
	}
	return found
}

func (h *fakeHost) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = nil
}

// fakeEngine returns what a test put into it.
type fakeEngine struct {
	mu        sync.Mutex
	contexts  []*fakeContext // protected by mu while inits run at once
	comms     map[uintptr]*fakeComm
	listeners map[uintptr]*fakeListener
	fused     int
	busy      bool  // they are in use
	err       error // what Fuse returns,
	apart     bool  // where there are several
}

type fakeContext struct {
	engine  *fakeEngine
	options transport.ContextOptions
	size    int   // of the last handle buffer
	class   int32 // of the last connect
	closed  int
	err     error
	ready   bool // the next connect is done
}

func (e *fakeEngine) Context(o transport.ContextOptions) netContext {
	c := &fakeContext{engine: e, options: o}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.contexts = append(e.contexts, c)
	return c
}

func (e *fakeEngine) Comm(handle uintptr, s side) (comm, error) {
	if c := e.comms[handle]; c != nil && (s == anySide || s == c.side) {
		return c, nil
	}
	return nil, report.Errorf(report.Misuse, "comm", "%#x is no comm", handle)
}

// Fuse makes a device without a transport behind it.
func (e *fakeEngine) Fuse(members []int) (*device.Device, error) {
	if e.err != nil && (len(members) > 1 || !e.apart) {
		return nil, e.err
	}
	d := &device.Device{}
	d.Index, d.Name, d.PCIPath = 2+e.fused, fmt.Sprint("fused", members), "/sys/devices/pci0000:00/0000:00:1f.6"
	e.fused++
	return d, nil
}

func (e *fakeEngine) Unfuse() bool {
	if !e.busy {
		e.fused = 0
	}
	return !e.busy
}

func (e *fakeEngine) Listener(handle uintptr) (listener, error) {
	if l := e.listeners[handle]; l != nil {
		return l, nil
	}
	return nil, report.Errorf(report.Misuse, "listen comm", "%#x is no listen", handle)
}

func (c *fakeContext) Listen(dev int, handle []byte) (listener, error) {
	c.size = len(handle)
	if c.err != nil {
		return nil, c.err
	}
	l := &fakeListener{context: c, handle: uintptr(0x5000 + len(c.engine.listeners))}
	c.engine.listeners[l.handle] = l
	return l, nil
}

func (c *fakeContext) Connect(dev int, class int32, handle []byte) (comm, error) {
	c.size, c.class = len(handle), class
	if c.err != nil || !c.ready {
		return nil, c.err
	}
	return c.engine.comm(c, sendSide), nil
}

func (c *fakeContext) Close() error { c.closed++; return c.err }

func (e *fakeEngine) comm(c *fakeContext, s side) *fakeComm {
	n := &fakeComm{context: c, side: s, handle: uintptr(0x7000 + len(e.comms))}
	e.comms[n.handle] = n
	return n
}

type fakeListener struct {
	context *fakeContext
	handle  uintptr
}

func (l *fakeListener) Handle() uintptr    { return l.handle }
func (l *fakeListener) Table() int         { return l.context.options.Table }
func (l *fakeListener) Log() report.Logger { return l.context.options.Log }

func (l *fakeListener) Accept() (comm, error) {
	if l.context.err != nil || !l.context.ready {
		return nil, l.context.err
	}
	return l.context.engine.comm(l.context, recvSide), nil
}

func (l *fakeListener) Close() error {
	delete(l.context.engine.listeners, l.handle)
	return nil
}

type fakeComm struct {
	context *fakeContext
	side    side
	handle  uintptr
	kind    rdma.MemKind
	fd      int
	err     error
}

func (c *fakeComm) Handle() uintptr    { return c.handle }
func (c *fakeComm) Table() int         { return c.context.options.Table }
func (c *fakeComm) Log() report.Logger { return c.context.options.Log }

func (c *fakeComm) RegMr(_ uintptr, _ uint64, kind rdma.MemKind) (uintptr, error) {
	c.kind = kind
	return 0x9000, c.err
}

func (c *fakeComm) RegMrDmaBuf(_ uintptr, _, _ uint64, fd int, kind rdma.MemKind) (uintptr, error) {
	c.kind, c.fd = kind, fd
	return 0x9001, c.err
}

func (c *fakeComm) DeregMr(uintptr) error { return c.err }

func (c *fakeComm) Close() error {
	delete(c.context.engine.comms, c.handle)
	return c.err
}

// bench is a process with fakes around it.
type bench struct {
	*process
	t      *testing.T
	host   *fakeHost
	engine *fakeEngine
	fail   error // of the next discovery
	gpu    bool  // device 0 takes DMA-BUFs and asks for flushes
	opened int

	records  []record.Config // of what was recorded
	meters   []meter.Config  // of what was counted
	noRecord error           // of either
}

const nccl, other = uintptr(0xc0de), uintptr(0xbeef) // two log functions

// newBench is a process in a host that prints INFO lines, unless env says otherwise.
func newBench(t *testing.T, env map[string]string) *bench {
	all := map[string]string{"NCCL_DEBUG": "INFO"}
	maps.Copy(all, env)
	b := &bench{t: t, host: &fakeHost{env: all, thread: 1, requests: fakeRequests{all: map[uintptr]int32{}}, modules: map[uintptr]module{nccl: {1, "libnccl.so"}, other: {2, "other.so"}}}}
	b.engine = &fakeEngine{comms: map[uintptr]*fakeComm{}, listeners: map[uintptr]*fakeListener{}}
	b.process = newProcess(b.host)
	b.devices = func(*knob.Values, report.Logger) ([]*tcp.Device, error) {
		if b.fail != nil {
			return nil, b.fail
		}
		one := func(i int, name, path string) *tcp.Device {
			return &tcp.Device{Streams: 1, Device: rdma.Device{
				Index: i, Name: name, PCIPath: path, GUID: uint64(i), SpeedMbps: 25000, MaxComms: rdma.MaxComms, MaxRecvs: rdma.MaxRecvs,
				Pointers: rdma.MemHost, MTU: 1500, Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, RailID: -1, PlaneID: -1}}
		}
		all := []*tcp.Device{one(0, "eth0", "/sys/devices/pci0000:00/0000:00:1f.6"), one(1, "lo", "")}
		if b.gpu {
			all[0].Pointers, all[0].Flush = rdma.MemHost|rdma.MemDMABUF, true
		}
		return all, nil
	}
	b.cards = func() []string { return nil }
	b.verbs = func(*knob.Values, report.Logger) (*verbs.Provider, error) { return nil, verbs.ErrNone }
	b.start = func(transport.Config) (engine, error) { b.opened++; return b.engine, nil }
	b.profile.record = func(c record.Config) (string, error) {
		b.records = append(b.records, c)
		return "the file", b.noRecord
	}
	b.profile.meter = func(c meter.Config) (string, error) {
		b.meters = append(b.meters, c)
		return "the other file", b.noRecord
	}
	return b
}

// init calls init as a table does and returns its code and context.
func (b *bench) init(table int, logger uintptr) (int32, uintptr) {
	var ctx uintptr
	a := abi.NetInitArgs{Table: int32(table), LogFunction: logger}
	if table >= tableContext {
		a.Ctx = &ctx
	}
	return b.done("init", b.Init(&a)), ctx
}

func (b *bench) mustInit(table int) uintptr {
	b.t.Helper()
	code, ctx := b.init(table, nccl)
	if code != 0 {
		b.t.Fatalf("init of v%d: %d, log %v", table, code, b.host.said)
	}
	if table < tableContext {
		return uintptr(table)
	}
	return ctx
}

func (s said) String() string {
	return fmt.Sprintf("%#x level %d flags %#x %s:%d %q", s.logger, s.level, s.flags, s.file, s.line, s.text)
}
