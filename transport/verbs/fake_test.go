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
)

// fakeLib is a libibverbs of Go values. It refuses what the real one must not
// be asked (objects twice destroyed, parents destroyed before children) and
// counts what is alive.
type fakeLib struct {
	t     testing.TB
	cards []fakeCard
	lacks []string // optional functions it does not have

	mu     sync.Mutex
	next   object
	live   map[object]string   // object -> kind, "qp of 3"
	parent map[object][]object // what an object stands on
	attrs  map[object]*qpAttr
	calls  []string // every call, by name

	// hooks that a test may set; nil: the plain answer
	onModify  func(qp object, attr *qpAttr) syscall.Errno
	onReg     func(call string, access Access) syscall.Errno
	onCreate  func(want qpCap) (qpCap, syscall.Errno)
	gone      map[object]bool // contexts whose device was taken away
	events    chan asyncEvent
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
	portAttr
	unreadable bool
	speed      uint64
	gids       []gidEntry
	pkeys      []uint16 // as many as pkeyTableLen says
}

const allMaxWR = 1024

func (f *fakeLib) enter(call string) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
}

func (f *fakeLib) make(kind string, on ...object) object {
	f.next += 16
	f.live[f.next] = kind
	f.parent[f.next] = on
	return f.next
}

func (f *fakeLib) destroy(kind string, o object) syscall.Errno {
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

func (f *fakeLib) card(context object) *fakeCard {
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
	return &fakeLib{t: t, cards: cards, next: 0x1000, live: map[object]string{}, parent: map[object][]object{}, attrs: map[object]*qpAttr{}}
}

// table makes the function table over the fake.
func (f *fakeLib) table() *calls {
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
	reg := func(call string, pd object, length uint64, access Access) (memoryKeys, syscall.Errno) {
		f.enter(call)
		defer f.mu.Unlock()
		if errno := optional(call); errno != 0 {
			return memoryKeys{}, errno
		}
		if f.onReg != nil {
			if errno := f.onReg(call, access); errno != 0 {
				return memoryKeys{}, errno
			}
		}
		mr := f.make("mr", pd)
		return memoryKeys{mr: mr, lkey: uint32(mr), rkey: uint32(mr) + 1}, 0
	}
	c := &calls{
		lacks:    lacks,
		forkInit: func() syscall.Errno { return 0 },
		getDeviceList: func() (object, []deviceEntry, syscall.Errno) {
			f.enter("get_device_list")
			defer f.mu.Unlock()
			var entries []deviceEntry
			for i, c := range f.cards {
				entries = append(entries, deviceEntry{device: object(i + 1), name: c.name, sysfs: c.sysfs, transport: c.transport})
			}
			return f.make("list"), entries, 0
		},
		freeDeviceList: func(list object) {
			f.enter("free_device_list")
			defer f.mu.Unlock()
			f.destroy("list", list)
		},
		openDevice: func(device object) (object, int, int, syscall.Errno) {
			f.enter("open_device")
			defer f.mu.Unlock()
			async := -1
			if f.events != nil {
				async = int(f.eventPipe[0].Fd())
			}
			return f.make("context of " + f.cards[device-1].name), -1, async, 0
		},
		closeDevice: func(context object) syscall.Errno {
			f.enter("close_device")
			defer f.mu.Unlock()
			return f.destroy(f.live[context], context)
		},
		queryDevice: func(context object) (deviceAttr, syscall.Errno) {
			f.enter("query_device")
			defer f.mu.Unlock()
			c := f.card(context)
			return deviceAttr{systemGUID: c.guid, maxQP: 1000, maxQPWR: allMaxWR, maxCQE: 1 << 16, ports: uint8(len(c.ports))}, 0
		},
		queryPort: func(context object, port uint8) (portAttr, syscall.Errno) {
			f.enter("query_port")
			defer f.mu.Unlock()
			p := &f.card(context).ports[port-1]
			if p.unreadable || f.gone[context] {
				return portAttr{}, syscall.EIO
			}
			return p.portAttr, 0
		},
		queryPortSpeed: func(context object, port uint8) (uint64, syscall.Errno) {
			f.enter("query_port_speed")
			defer f.mu.Unlock()
			return f.card(context).ports[port-1].speed, optional("ibv_query_port_speed")
		},
		queryGID: func(context object, port uint8, index int) ([16]byte, syscall.Errno) {
			f.enter("query_gid")
			defer f.mu.Unlock()
			for _, g := range f.card(context).ports[port-1].gids {
				if g.index == index {
					return g.gid, 0
				}
			}
			return [16]byte{}, syscall.ENODATA
		},
		queryGIDTable: func(context object, most int) ([]gidEntry, syscall.Errno) {
			f.enter("query_gid_table")
			defer f.mu.Unlock()
			var all []gidEntry
			for i, p := range f.card(context).ports {
				for _, g := range p.gids {
					g.port = uint8(i + 1)
					all = append(all, g)
				}
			}
			if len(all) > most {
				f.t.Errorf("GID table of %d entries read into %d", len(all), most)
			}
			return all, optional("ibv_query_gid_table")
		},
		queryPKey: func(context object, port uint8, index int) (uint16, syscall.Errno) {
			f.enter("query_pkey")
			defer f.mu.Unlock()
			keys := f.card(context).ports[port-1].pkeys
			if index >= len(keys) {
				return 0, syscall.EINVAL
			}
			return keys[index], 0
		},
		allocPD: func(context object) (object, syscall.Errno) {
			f.enter("alloc_pd")
			defer f.mu.Unlock()
			if f.gone[context] {
				return 0, syscall.EIO
			}
			return f.make("pd", context), 0
		},
		deallocPD: func(pd object) syscall.Errno {
			f.enter("dealloc_pd")
			defer f.mu.Unlock()
			return f.destroy("pd", pd)
		},
		regMR: func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno) {
			return reg("ibv_reg_mr", pd, length, access)
		},
		regMRIova2: func(pd object, addr uintptr, length uint64, access Access) (memoryKeys, syscall.Errno) {
			return reg("ibv_reg_mr_iova2", pd, length, access)
		},
		regDmabufMR: func(pd object, offset, length uint64, iova uintptr, fd int, access Access) (memoryKeys, syscall.Errno) {
			if fd < 0 && !lacks["ibv_reg_dmabuf_mr"] {
				return memoryKeys{}, syscall.EBADF
			}
			return reg("ibv_reg_dmabuf_mr", pd, length, access)
		},
		deregMR: func(mr object) syscall.Errno {
			f.enter("dereg_mr")
			defer f.mu.Unlock()
			return f.destroy("mr", mr)
		},
		createCQ: func(context object, cqe int) (object, int, syscall.Errno) {
			f.enter("create_cq")
			defer f.mu.Unlock()
			if f.gone[context] {
				return 0, 0, syscall.EIO
			}
			return f.make("cq", context), cqe, 0
		},
		destroyCQ: func(cq object) syscall.Errno {
			f.enter("destroy_cq")
			defer f.mu.Unlock()
			return f.destroy("cq", cq)
		},
		createQP: func(pd, sendCQ, recvCQ object, want qpCap) (object, uint32, qpCap, syscall.Errno) {
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
			f.attrs[qp] = &qpAttr{}
			return qp, uint32(qp), got, 0
		},
		modifyQP: func(qp object, attr *qpAttr) syscall.Errno {
			f.enter("modify_qp")
			defer f.mu.Unlock()
			if f.onModify != nil {
				if errno := f.onModify(qp, attr); errno != 0 {
					return errno
				}
			}
			from := f.attrs[qp].state
			if to := attr.state; to != StateReset && to != StateErr && to != from+1 {
				f.t.Errorf("queue pair goes from %v to %v", from, to)
				return syscall.EINVAL
			}
			kept := *attr
			f.attrs[qp] = &kept
			return 0
		},
		queryQP: func(qp object) (qpAttr, syscall.Errno) {
			f.enter("query_qp")
			defer f.mu.Unlock()
			return *f.attrs[qp], 0
		},
		destroyQP: func(qp object) syscall.Errno {
			f.enter("destroy_qp")
			defer f.mu.Unlock()
			return f.destroy("qp", qp)
		},
		queryECE: func(qp object) (ECE, syscall.Errno) {
			return ECE{Vendor: 0x15b3, Options: 7}, optional("ibv_query_ece")
		},
		setECE: func(qp object, ece ECE) syscall.Errno { return optional("ibv_set_ece") },
		getAsyncEvent: func(context object) (asyncEvent, syscall.Errno) {
			select {
			case e := <-f.events:
				var b [1]byte
				syscall.Read(int(f.eventPipe[0].Fd()), b[:])
				return e, 0
			default:
				return asyncEvent{}, syscall.EAGAIN
			}
		},
		ackAsyncEvent: func(asyncEvent) {},
	}
	withoutMLX5(c)
	return c
}

// entry makes an entry of a GID table.
func entry(index int, kind GIDType, addr string, ifIndex int) gidEntry {
	a := netip.MustParseAddr(addr)
	return gidEntry{port: 1, gid: a.As16(), index: index, kind: kind, ifIndex: ifIndex}
}

// roce is a card with one active RoCE port in 10.0.0.0/24.
func roce(name, addr string, ifIndex int) fakeCard {
	return fakeCard{name: name, guid: 0xabcd, ports: []fakePort{{
		portAttr: portAttr{state: portActive, linkLayer: linkEthernet, activeMTU: 5, gidTableLen: 16, maxMessage: 1 << 30, activeWidth: 1, activeSpeed: 4},
		gids: []gidEntry{
			entry(0, GIDRoCEv1, "fe80::1", ifIndex), entry(1, GIDRoCEv2, "fe80::1", ifIndex),
			entry(2, GIDRoCEv1, addr, ifIndex), entry(3, GIDRoCEv2, addr, ifIndex),
		},
	}}}
}

// fakeHost is a machine with the links and an empty sysfs.
func fakeHost(t testing.TB, links ...Link) *Host {
	return &Host{Sysfs: t.TempDir(), Links: func() ([]Link, error) { return links, nil }}
}

func eth(index int, up bool, addrs ...string) Link {
	l := Link{Index: index, Name: fmt.Sprintf("eth%d", index), Up: up}
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
func (f *fakeLib) start(t testing.TB, host *Host, env map[string]string) (*Provider, *report.Recorder, error) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(env), Log: log, Host: host, lib: f.table()})
	return p, log, err
}
