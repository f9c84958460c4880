package transport

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/device"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/session"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// testLimit bounds every wait in these tests; none of them measures time.
const testLimit = 20 * time.Second

// waitsForCTS is more than what leaves ahead of its receive over TCP.
const waitsForCTS = 280_000

// netDevice is an interface of the test's own invention.
func netDevice(index int, name string, streams int, addrs ...string) *tcp.Device {
	d := &tcp.Device{Streams: streams}
	d.Device = rdma.Device{Index: index, Name: name, GUID: uint64(index), MTU: 65536, IfIndex: 1, Pointers: rdma.MemHost}
	for _, a := range addrs {
		d.Addrs = append(d.Addrs, netip.MustParsePrefix(a))
	}
	return d
}

func lo(streams int) *tcp.Device { return netDevice(0, "lo", streams, "127.0.0.1/8") }

// testCode is distinct per cause.
func testCode(err error, _ int) int32 { return 100 + int32(report.CauseOf(err)) }

// Comm is what the tests are about.
type Comm = comms.Comm

// fast is the executor's view of a comm that is open.
func fast(c *Comm) *fastpath.Comm {
	fp, err := fastpath.Lookup(c.Handle())
	if err != nil {
		panic(err)
	}
	return fp
}

type process struct {
	*Core
	log *report.Recorder
	ctx *Context
	dev int // that listen and connect use

	parted  parted
	probing probing
	alarms  alarms
}

// aTable is any: it is told to whoever asks on whose behalf something failed, and decides nothing here.
const aTable = 12

// start plays a process: a core of its own.
func start(t testing.TB, env map[string]string, devices ...*tcp.Device) *process {
	t.Helper()
	if len(devices) == 0 {
		devices = []*tcp.Device{lo(1)}
	}
	k := knob.Parse(env)
	if p := k.Problems(); len(p) != 0 {
		t.Fatal(p)
	}
	p := &process{log: &report.Recorder{}}
	c, err := Open(Config{Knobs: k, Log: p.log, Code: testCode, Devices: device.Found(devices, nil), Interfaces: devices, Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	p.Core, p.ctx = c, c.NewContext(ContextOptions{Table: aTable, TrafficClass: -1})
	t.Cleanup(c.Close)
	return p
}

// Devices are those of the host in NCCL's order, fused ones at the end.
func (p *process) Devices() (all []*device.Device) {
	for {
		d, err := p.devices.Get("test", len(all))
		if err != nil {
			return all
		}
		all = append(all, d)
	}
}

func (p *process) listen(t testing.TB, size int) (*Listener, []byte) {
	t.Helper()
	h := make([]byte, size)
	l, err := p.ctx.Listen(p.dev, h)
	if err != nil {
		t.Fatal(err)
	}
	return l, h
}

// registered is how much memory p's context still has on a device without comms.
func (p *process) registered(d *device.Device) int {
	d.Ports.Open(p.ctx)
	return len(d.Ports.Close(p.ctx))
}

// heardOver waits until a process has heard that the peer needs nothing of a comm any more.
func heardOver(t testing.TB, m *session.Member) {
	t.Helper()
	select {
	case <-m.Over:
	case <-time.After(testLimit):
		t.Fatal("the peer does not say that it is over")
	}
}

// eventually polls until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testLimit); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", testLimit, what)
		}
	}
}

var errStill = errors.New("still pending at the test's limit")

// connect polls until the connect ends.
func (p *process) connect(handle []byte) (*Comm, error) {
	for end := time.Now().Add(testLimit); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if c, err := p.ctx.Connect(p.dev, -1, handle); c != nil || err != nil {
			return c, err
		}
	}
	return nil, errStill
}

func accept(l *Listener) (*Comm, error) {
	for end := time.Now().Add(testLimit); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if c, err := l.Accept(); c != nil || err != nil {
			return c, err
		}
	}
	return nil, errStill
}

// pair connects a to a listen of b.
func pair(t testing.TB, a, b *process) (send, recv *Comm) {
	t.Helper()
	l, h := b.listen(t, wire.HandleMax)
	defer l.Close()
	return meet(t, a, l, h)
}

// meet connects a process to a listen of another, and accepts.
func meet(t testing.TB, a *process, l *Listener, handle []byte) (send, recv *Comm) {
	t.Helper()
	send, err := a.connect(handle)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	recv, err = accept(l)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return send, recv
}

// hint is what the host says from now on about the work to come.
func (x *Context) hint(a rdma.Attr) { x.opts.Hints = func() rdma.Attr { return a } }
