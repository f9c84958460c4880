// Package fakeibv is a libibverbs of Go values, for tests of what stands on one. It
// refuses what the real one must not be asked, and tells what is left.
package fakeibv

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"weft/transport/verbs/ibv"
)

// Lib is such a library. It refuses objects that are destroyed twice and parents
// that are destroyed before their children, and counts what is alive.
type Lib struct {
	sync.Mutex // protects all below once a table is in use
	Cards      []Card
	Lacking    []string // optional functions it does not have

	// What a test may set; nil: the plain answer.
	OnModify func(qp ibv.Object, attr *ibv.QPAttr) syscall.Errno
	OnReg    func(call string, access ibv.Access) syscall.Errno
	OnCreate func(want ibv.QPCap) (ibv.QPCap, syscall.Errno)
	Gone     map[ibv.Object]bool // contexts whose device was taken away

	t      testing.TB
	next   ibv.Object
	live   map[ibv.Object]string       // object -> kind, "qp of 3"
	parent map[ibv.Object][]ibv.Object // what an object stands on
	attrs  map[ibv.Object]*ibv.QPAttr
	made   []string // every call, by name
	events chan ibv.AsyncEvent
	pipe   [2]*os.File
}

// Card is a device of it.
type Card struct {
	Name      string
	Sysfs     string
	Transport int32
	Ports     []Port
	GUID      uint64
}

// Port is one of a card's.
type Port struct {
	ibv.PortAttr
	Unreadable bool
	Speed      uint64
	GIDs       []ibv.GIDEntry
	PKeys      []uint16 // as many as PKeyTableLen says
}

// MaxWR is the requests that a queue holds at most.
const MaxWR = 1024

func (f *Lib) enter(call string) {
	f.Lock()
	f.made = append(f.made, call)
}

func (f *Lib) make(kind string, on ...ibv.Object) ibv.Object {
	f.next += 16
	f.live[f.next] = kind
	f.parent[f.next] = on
	return f.next
}

func (f *Lib) destroy(kind string, o ibv.Object) syscall.Errno {
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

// Made is every call so far, by name.
func (f *Lib) Made() []string {
	f.Lock()
	defer f.Unlock()
	return slices.Clone(f.made)
}

// Left lists what was not destroyed.
func (f *Lib) Left() []string {
	f.Lock()
	defer f.Unlock()
	var all []string
	for o, kind := range f.live {
		all = append(all, fmt.Sprintf("%s %#x", kind, o))
	}
	return all
}

func (f *Lib) card(context ibv.Object) *Card {
	kind := f.live[context]
	for i := range f.Cards {
		if kind == "context of "+f.Cards[i].Name {
			return &f.Cards[i]
		}
	}
	f.t.Errorf("%#x is no context but %q", context, kind)
	return &Card{}
}

// New is a library that shows these cards.
func New(t testing.TB, cards ...Card) *Lib {
	return &Lib{t: t, Cards: cards, next: 0x1000, live: map[ibv.Object]string{}, parent: map[ibv.Object][]ibv.Object{}, attrs: map[ibv.Object]*ibv.QPAttr{}}
}

// Table makes the function table over the fake.
func (f *Lib) Table() *ibv.Calls {
	lacks := map[string]bool{}
	for _, name := range f.Lacking {
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
		defer f.Unlock()
		if errno := optional(call); errno != 0 {
			return ibv.MemoryKeys{}, errno
		}
		if f.OnReg != nil {
			if errno := f.OnReg(call, access); errno != 0 {
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
			defer f.Unlock()
			var entries []ibv.DeviceEntry
			for i, c := range f.Cards {
				entries = append(entries, ibv.DeviceEntry{Device: ibv.Object(i + 1), Name: c.Name, Sysfs: c.Sysfs, Transport: c.Transport})
			}
			return f.make("list"), entries, 0
		},
		FreeDeviceList: func(list ibv.Object) {
			f.enter("free_device_list")
			defer f.Unlock()
			f.destroy("list", list)
		},
		OpenDevice: func(device ibv.Object) (ibv.Object, int, int, syscall.Errno) {
			f.enter("open_device")
			defer f.Unlock()
			async := -1
			if f.events != nil {
				async = int(f.pipe[0].Fd())
			}
			return f.make("context of " + f.Cards[device-1].Name), -1, async, 0
		},
		CloseDevice: func(context ibv.Object) syscall.Errno {
			f.enter("close_device")
			defer f.Unlock()
			return f.destroy(f.live[context], context)
		},
		QueryDevice: func(context ibv.Object) (ibv.DeviceAttr, syscall.Errno) {
			f.enter("query_device")
			defer f.Unlock()
			c := f.card(context)
			return ibv.DeviceAttr{SystemGUID: c.GUID, MaxQP: 1000, MaxQPWR: MaxWR, MaxCQE: 1 << 16, Ports: uint8(len(c.Ports))}, 0
		},
		QueryPort: func(context ibv.Object, port uint8) (ibv.PortAttr, syscall.Errno) {
			f.enter("query_port")
			defer f.Unlock()
			p := &f.card(context).Ports[port-1]
			if p.Unreadable || f.Gone[context] {
				return ibv.PortAttr{}, syscall.EIO
			}
			return p.PortAttr, 0
		},
		QueryPortSpeed: func(context ibv.Object, port uint8) (uint64, syscall.Errno) {
			f.enter("query_port_speed")
			defer f.Unlock()
			return f.card(context).Ports[port-1].Speed, optional("ibv_query_port_speed")
		},
		QueryGID: func(context ibv.Object, port uint8, index int) ([16]byte, syscall.Errno) {
			f.enter("query_gid")
			defer f.Unlock()
			for _, g := range f.card(context).Ports[port-1].GIDs {
				if g.Index == index {
					return g.GID, 0
				}
			}
			return [16]byte{}, syscall.ENODATA
		},
		QueryGIDTable: func(context ibv.Object, most int) ([]ibv.GIDEntry, syscall.Errno) {
			f.enter("query_gid_table")
			defer f.Unlock()
			var all []ibv.GIDEntry
			for i, p := range f.card(context).Ports {
				for _, g := range p.GIDs {
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
			defer f.Unlock()
			keys := f.card(context).Ports[port-1].PKeys
			if index >= len(keys) {
				return 0, syscall.EINVAL
			}
			return keys[index], 0
		},
		AllocPD: func(context ibv.Object) (ibv.Object, syscall.Errno) {
			f.enter("alloc_pd")
			defer f.Unlock()
			if f.Gone[context] {
				return 0, syscall.EIO
			}
			return f.make("pd", context), 0
		},
		DeallocPD: func(pd ibv.Object) syscall.Errno {
			f.enter("dealloc_pd")
			defer f.Unlock()
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
			defer f.Unlock()
			return f.destroy("mr", mr)
		},
		CreateCQ: func(context ibv.Object, cqe int) (ibv.Object, int, syscall.Errno) {
			f.enter("create_cq")
			defer f.Unlock()
			if f.Gone[context] {
				return 0, 0, syscall.EIO
			}
			return f.make("cq", context), cqe, 0
		},
		DestroyCQ: func(cq ibv.Object) syscall.Errno {
			f.enter("destroy_cq")
			defer f.Unlock()
			return f.destroy("cq", cq)
		},
		CreateQP: func(pd, sendCQ, recvCQ ibv.Object, want ibv.QPCap) (ibv.Object, uint32, ibv.QPCap, syscall.Errno) {
			f.enter("create_qp")
			defer f.Unlock()
			got := want
			if f.OnCreate != nil {
				var errno syscall.Errno
				if got, errno = f.OnCreate(want); errno != 0 {
					return 0, 0, got, errno
				}
			}
			qp := f.make("qp", pd, sendCQ, recvCQ)
			f.attrs[qp] = &ibv.QPAttr{}
			return qp, uint32(qp), got, 0
		},
		ModifyQP: func(qp ibv.Object, attr *ibv.QPAttr) syscall.Errno {
			f.enter("modify_qp")
			defer f.Unlock()
			if f.OnModify != nil {
				if errno := f.OnModify(qp, attr); errno != 0 {
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
			defer f.Unlock()
			return *f.attrs[qp], 0
		},
		DestroyQP: func(qp ibv.Object) syscall.Errno {
			f.enter("destroy_qp")
			defer f.Unlock()
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
				syscall.Read(int(f.pipe[0].Fd()), b[:])
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
