package verbs

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// fakeLib is a libibverbs of Go values. It refuses what the real one must not
// be asked (objects twice destroyed, parents destroyed before children) and
// counts what is alive.
type fakeLib struct {
	t     testing.TB
	cards []fakeCard
	lacks []string // optional functions it does not have

	mu     sync.Mutex
	next   ibv.Object
	live   map[ibv.Object]string       // object -> kind, "qp of 3"
	parent map[ibv.Object][]ibv.Object // what an object stands on
	attrs  map[ibv.Object]*ibv.QPAttr
	calls  []string // every call, by name

	// hooks that a test may set; nil: the plain answer
	onModify  func(qp ibv.Object, attr *ibv.QPAttr) syscall.Errno
	onReg     func(call string, access ibv.Access) syscall.Errno
	onCreate  func(want ibv.QPCap) (ibv.QPCap, syscall.Errno)
	gone      map[ibv.Object]bool // contexts whose device was taken away
	events    chan ibv.AsyncEvent
	eventPipe [2]*os.File
}

type fakeCard struct {
	name      string
	sysfs     string
	transport int32
	ports     []fakePort
	guid      uint64
}

type fakePort struct {
	ibv.PortAttr
	unreadable bool
	speed      uint64
	gids       []ibv.GIDEntry
	pkeys      []uint16 // as many as pkeyTableLen says
}

const allMaxWR = 1024

func (f *fakeLib) enter(call string) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
}

func (f *fakeLib) make(kind string, on ...ibv.Object) ibv.Object {
	f.next += 16
	f.live[f.next] = kind
	f.parent[f.next] = on
	return f.next
}

func (f *fakeLib) destroy(kind string, o ibv.Object) syscall.Errno {
	if f.live[o] != kind {
		f.t.Errorf("destroy of %s %#x, which is %q", kind, o, f.live[o])
		return syscall.EINVAL
	}
	for child, on := range f.parent {
		for _, p := range on {
			if _, alive := f.live[child]; alive && p == o {
				return syscall.EBUSY
			}
		}
	}
	delete(f.live, o)
	return 0
}

// left lists what was not destroyed.
func (f *fakeLib) left() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for o, kind := range f.live {
		all = append(all, fmt.Sprintf("%s %#x", kind, o))
	}
	return all
}

func (f *fakeLib) card(context ibv.Object) *fakeCard {
	kind := f.live[context]
	for i := range f.cards {
		if kind == "context of "+f.cards[i].name {
			return &f.cards[i]
		}
	}
	f.t.Errorf("%#x is no context but %q", context, kind)
	return &fakeCard{}
}

func newFake(t testing.TB, cards ...fakeCard) *fakeLib {
	return &fakeLib{t: t, cards: cards, next: 0x1000, live: map[ibv.Object]string{}, parent: map[ibv.Object][]ibv.Object{}, attrs: map[ibv.Object]*ibv.QPAttr{}}
}

// table makes the function table over the fake.
func (f *fakeLib) table() *ibv.Calls {
	lacks := map[string]bool{}
	for _, name := range f.lacks {
		lacks[name] = true
	}
	optional := func(name string) syscall.Errno {
		if lacks[name] {
			return syscall.ENOSYS
		}
		return 0
	}
	reg := func(call string, pd ibv.Object, length uint64, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		f.enter(call)
		defer f.mu.Unlock()
		if errno := optional(call); errno != 0 {
			return ibv.MemoryKeys{}, errno
		}
		if f.onReg != nil {
			if errno := f.onReg(call, access); errno != 0 {
				return ibv.MemoryKeys{}, errno
			}
		}
		mr := f.make("mr", pd)
		return ibv.MemoryKeys{MR: mr, LKey: uint32(mr), RKey: uint32(mr) + 1}, 0
	}
	c := &ibv.Calls{
		Lacks:    lacks,
		ForkInit: func() syscall.Errno { return 0 },
		GetDeviceList: func() (ibv.Object, []ibv.DeviceEntry, syscall.Errno) {
			f.enter("get_device_list")
			defer f.mu.Unlock()
			var entries []ibv.DeviceEntry
			for i, c := range f.cards {
				entries = append(entries, ibv.DeviceEntry{Device: ibv.Object(i + 1), Name: c.name, Sysfs: c.sysfs, Transport: c.transport})
			}
			return f.make("list"), entries, 0
		},
		FreeDeviceList: func(list ibv.Object) {
			f.enter("free_device_list")
			defer f.mu.Unlock()
			f.destroy("list", list)
		},
		OpenDevice: func(device ibv.Object) (ibv.Object, int, int, syscall.Errno) {
			f.enter("open_device")
			defer f.mu.Unlock()
			async := -1
			if f.events != nil {
				async = int(f.eventPipe[0].Fd())
			}
			return f.make("context of " + f.cards[device-1].name), -1, async, 0
		},
		CloseDevice: func(context ibv.Object) syscall.Errno {
			f.enter("close_device")
			defer f.mu.Unlock()
			return f.destroy(f.live[context], context)
		},
		QueryDevice: func(context ibv.Object) (ibv.DeviceAttr, syscall.Errno) {
			f.enter("query_device")
			defer f.mu.Unlock()
			c := f.card(context)
			return ibv.DeviceAttr{SystemGUID: c.guid, MaxQP: 1000, MaxQPWR: allMaxWR, MaxCQE: 1 << 16, Ports: uint8(len(c.ports))}, 0
		},
		QueryPort: func(context ibv.Object, port uint8) (ibv.PortAttr, syscall.Errno) {
			f.enter("query_port")
			defer f.mu.Unlock()
			p := &f.card(context).ports[port-1]
			if p.unreadable || f.gone[context] {
				return ibv.PortAttr{}, syscall.EIO
			}
			return p.PortAttr, 0
		},
		QueryPortSpeed: func(context ibv.Object, port uint8) (uint64, syscall.Errno) {
			f.enter("query_port_speed")
			defer f.mu.Unlock()
			return f.card(context).ports[port-1].speed, optional("ibv_query_port_speed")
		},
		QueryGID: func(context ibv.Object, port uint8, index int) ([16]byte, syscall.Errno) {
			f.enter("query_gid")
			defer f.mu.Unlock()
			for _, g := range f.card(context).ports[port-1].gids {
				if g.Index == index {
					return g.GID, 0
				}
			}
			return [16]byte{}, syscall.ENODATA
		},
		QueryGIDTable: func(context ibv.Object, most int) ([]ibv.GIDEntry, syscall.Errno) {
			f.enter("query_gid_table")
			defer f.mu.Unlock()
			var all []ibv.GIDEntry
			for i, p := range f.card(context).ports {
				for _, g := range p.gids {
					g.Port = uint8(i + 1)
					all = append(all, g)
				}
			}
			if len(all) > most {
				f.t.Errorf("GID table of %d entries read into %d", len(all), most)
			}
			return all, optional("ibv_query_gid_table")
		},
		QueryPKey: func(context ibv.Object, port uint8, index int) (uint16, syscall.Errno) {
			f.enter("query_pkey")
			defer f.mu.Unlock()
			keys := f.card(context).ports[port-1].pkeys
			if index >= len(keys) {
				return 0, syscall.EINVAL
			}
			return keys[index], 0
		},
		AllocPD: func(context ibv.Object) (ibv.Object, syscall.Errno) {
			f.enter("alloc_pd")
			defer f.mu.Unlock()
			if f.gone[context] {
				return 0, syscall.EIO
			}
			return f.make("pd", context), 0
		},
		DeallocPD: func(pd ibv.Object) syscall.Errno {
			f.enter("dealloc_pd")
			defer f.mu.Unlock()
			return f.destroy("pd", pd)
		},
		RegMR: func(pd ibv.Object, addr uintptr, length uint64, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
			return reg("ibv_reg_mr", pd, length, access)
		},
		RegMRIOVA2: func(pd ibv.Object, addr uintptr, length uint64, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
			return reg("ibv_reg_mr_iova2", pd, length, access)
		},
		RegDMABufMR: func(pd ibv.Object, offset, length uint64, iova uintptr, fd int, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
			if fd < 0 && !lacks["ibv_reg_dmabuf_mr"] {
				return ibv.MemoryKeys{}, syscall.EBADF
			}
			return reg("ibv_reg_dmabuf_mr", pd, length, access)
		},
		DeregMR: func(mr ibv.Object) syscall.Errno {
			f.enter("dereg_mr")
			defer f.mu.Unlock()
			return f.destroy("mr", mr)
		},
		CreateCQ: func(context ibv.Object, cqe int) (ibv.Object, int, syscall.Errno) {
			f.enter("create_cq")
			defer f.mu.Unlock()
			if f.gone[context] {
				return 0, 0, syscall.EIO
			}
			return f.make("cq", context), cqe, 0
		},
		DestroyCQ: func(cq ibv.Object) syscall.Errno {
			f.enter("destroy_cq")
			defer f.mu.Unlock()
			return f.destroy("cq", cq)
		},
		CreateQP: func(pd, sendCQ, recvCQ ibv.Object, want ibv.QPCap) (ibv.Object, uint32, ibv.QPCap, syscall.Errno) {
			f.enter("create_qp")
			defer f.mu.Unlock()
			got := want
			if f.onCreate != nil {
				var errno syscall.Errno
				if got, errno = f.onCreate(want); errno != 0 {
					return 0, 0, got, errno
				}
			}
			qp := f.make("qp", pd, sendCQ, recvCQ)
			f.attrs[qp] = &ibv.QPAttr{}
			return qp, uint32(qp), got, 0
		},
		ModifyQP: func(qp ibv.Object, attr *ibv.QPAttr) syscall.Errno {
			f.enter("modify_qp")
			defer f.mu.Unlock()
			if f.onModify != nil {
				if errno := f.onModify(qp, attr); errno != 0 {
					return errno
				}
			}
			from := f.attrs[qp].State
			if to := attr.State; to != ibv.StateReset && to != ibv.StateErr && to != from+1 {
				f.t.Errorf("queue pair goes from %v to %v", from, to)
				return syscall.EINVAL
			}
			kept := *attr
			f.attrs[qp] = &kept
			return 0
		},
		QueryQP: func(qp ibv.Object) (ibv.QPAttr, syscall.Errno) {
			f.enter("query_qp")
			defer f.mu.Unlock()
			return *f.attrs[qp], 0
		},
		DestroyQP: func(qp ibv.Object) syscall.Errno {
			f.enter("destroy_qp")
			defer f.mu.Unlock()
			return f.destroy("qp", qp)
		},
		QueryECE: func(qp ibv.Object) (ibv.ECE, syscall.Errno) {
			return ibv.ECE{Vendor: 0x15b3, Options: 7}, optional("ibv_query_ece")
		},
		SetECE: func(qp ibv.Object, ece ibv.ECE) syscall.Errno { return optional("ibv_set_ece") },
		GetAsyncEvent: func(context ibv.Object) (ibv.AsyncEvent, syscall.Errno) {
			select {
			case e := <-f.events:
				var b [1]byte
				syscall.Read(int(f.eventPipe[0].Fd()), b[:])
				return e, 0
			default:
				return ibv.AsyncEvent{}, syscall.EAGAIN
			}
		},
		AckAsyncEvent: func(ibv.AsyncEvent) {},
	}
	ibv.WithoutMLX5(c)
	return c
}

// entry makes an entry of a GID table.
func entry(index int, kind ibv.GIDType, addr string, ifIndex int) ibv.GIDEntry {
	a := netip.MustParseAddr(addr)
	return ibv.GIDEntry{Port: 1, GID: a.As16(), Index: index, Kind: kind, IfIndex: ifIndex}
}

// roce is a card with one active RoCE port in 10.0.0.0/24.
func roce(name, addr string, ifIndex int) fakeCard {
	return fakeCard{name: name, guid: 0xabcd, ports: []fakePort{{
		PortAttr: ibv.PortAttr{State: ibv.PortActive, LinkLayer: ibv.LinkEthernet, ActiveMTU: 5, GIDTableLen: 16, MaxMessage: 1 << 30, ActiveWidth: 1, ActiveSpeed: 4},
		gids: []ibv.GIDEntry{
			entry(0, ibv.GIDRoCEv1, "fe80::1", ifIndex), entry(1, ibv.GIDRoCEv2, "fe80::1", ifIndex),
			entry(2, ibv.GIDRoCEv1, addr, ifIndex), entry(3, ibv.GIDRoCEv2, addr, ifIndex),
		},
	}}}
}

// fakeHost is a machine with the links and an empty sysfs.
func fakeHost(t testing.TB, links ...machine.Link) *machine.Machine {
	return &machine.Machine{Sysfs: t.TempDir(), Links: func() ([]machine.Link, error) { return links, nil }}
}

func eth(index int, up bool, addrs ...string) machine.Link {
	l := machine.Link{Index: index, Name: fmt.Sprintf("eth%d", index), Up: up}
	for _, a := range addrs {
		l.Addrs = append(l.Addrs, netip.MustParsePrefix(a))
	}
	return l
}

// write makes a file below root, with its folders.
func write(t testing.TB, text string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// start opens a provider over the fake.
func (f *fakeLib) start(t testing.TB, host *machine.Machine, env map[string]string) (*Provider, *report.Recorder, error) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(env), Log: log, Host: host, lib: f.table()})
	return p, log, err
}
