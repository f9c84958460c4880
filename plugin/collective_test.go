package plugin

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/collnet"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/tcp"
)

func (h *fakeHost) Requests() collnet.Requests { return &h.requests }

func (b *bench) collNet() collective { return collective{process: b.process} }

const commOfBench = 4711 // what the host calls its communicator

func (b *bench) begin(t *testing.T, table int32) (c uintptr) {
	t.Helper()
	a := abi.CollNetInitArgs{Table: table, CommId: commOfBench, LogFunction: nccl}
	if table >= tableContext {
		a.Ctx = &c
	}
	if err := b.collNet().Init(&a); err != nil {
		t.Fatal(err)
	}
	if table < tableContext {
		return uintptr(table)
	}
	return c
}

// collOptions are those of a context of collectives.
func (b *bench) collOptions() collnet.Options {
	b.host.env["WEFT_COLLNET"] = "1"
	c := newBench(b.t, b.host.env)
	x, err := c.collContexts.find("test", c.begin(b.t, abi.NetNewest))
	if err != nil {
		b.t.Fatal(err)
	}
	return x.coll.Options
}

func (b *bench) collDevices(t *testing.T) int32 {
	t.Helper()
	n := int32(-1)
	if err := b.collNet().Devices(&abi.CollNetDevicesArgs{Ndev: &n}); err != nil {
		t.Fatal(err)
	}
	return n
}

var wanted = map[string]string{"WEFT_COLLNET": "1"}

func TestCollNetIsForWhoWantsIt(t *testing.T) {
	for _, table := range []int32{3, 10, 11, abi.NetNewest} {
		for _, first := range []bool{true, false} { // the net's init comes before
			b := newBench(t, nil)
			if first {
				b.mustInit(abi.NetNewest)
			}
			said := len(b.host.said)
			if ctx := b.begin(t, table); ctx >= firstContext || b.collDevices(t) != 0 || len(b.host.said) != said {
				t.Errorf("v%d: unasked, context %#x, %d devices, %v", table, ctx, b.collDevices(t), b.host.said[said:])
			}
			b = newBench(t, wanted)
			if first {
				b.mustInit(abi.NetNewest)
			}
			ctx := b.begin(t, table)
			if ctx == 0 || b.collDevices(t) != 2 || len(b.host.lines(levelInfo, "collNet offers 2 devices", "CollNet device counts")) != 1 {
				t.Errorf("v%d: context %#x, %d devices, %v", table, ctx, b.collDevices(t), b.host.said)
			}
			if table < tableContext {
				if again := b.begin(t, table); again != ctx || len(b.collContexts.old) != 1 {
					t.Errorf("v%d: the second init is not the first's", table)
				}
				continue
			}
			if err := b.collNet().Finalize(&abi.CollNetFinalizeArgs{Ctx: ctx}); err != nil {
				t.Error(err)
			}
			if err := b.collNet().Finalize(&abi.CollNetFinalizeArgs{Ctx: ctx}); err == nil {
				t.Error("finalized twice")
			}
		}
	}
}

func TestPropertiesOfCollNet(t *testing.T) {
	b := newBench(t, wanted)
	b.gpu = true
	b.mustInit(abi.NetNewest)
	b.begin(t, abi.NetNewest)
	var net, coll abi.NetProperties
	scribble(&coll)
	if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: 0, Props: &net}); err != nil {
		t.Fatal(err)
	}
	if err := b.collNet().GetProperties(&abi.CollNetGetPropertiesArgs{Dev: 0, Props: &coll}); err != nil {
		t.Fatal(err)
	}
	net.PtrSupport, net.ForceFlush = abi.NCCL_PTR_HOST, 0
	if coll != net {
		t.Errorf("%+v, want %+v", coll, net)
	}
}

// NCCL makes devices through both kinds of tables, in either order, and knows them by their names.
func TestBothMakeTheSameDevices(t *testing.T) {
	b := newBench(t, wanted)
	fuse := func(members ...int32) int32 {
		d, props := int32(-7), abi.NetVDeviceProps{Ndevs: int32(len(members))}
		copy(props.Devs[:], members)
		if err := b.collNet().MakeVDevice(&abi.CollNetMakeVDeviceArgs{Asked: props.Ndevs, D: &d, Props: &props}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for range 2 {
		b.mustInit(abi.NetNewest)
		if n := b.counted(t); n != 2 {
			t.Fatalf("net counts %d", n)
		}
		b.begin(t, abi.NetNewest)
		if n := b.collDevices(t); n != 2 {
			t.Fatalf("collNet counts %d", n)
		}
		if d := fuse(0); d != 2 {
			t.Errorf("device %d", d)
		}
		if d := fuse(1); d != 3 || b.collDevices(t) != 4 || b.counted(t) != 2 {
			t.Errorf("device %d of %d, net counts %d", d, b.collDevices(t), b.counted(t))
		}
		for m := range int32(2) {
			if d, err := b.fuse(m); err != nil || d != 2+m {
				t.Errorf("device %d, %v", d, err)
			}
		}
		if b.counted(t) != 4 || b.engine.fused != 2 {
			t.Errorf("net counts %d, %d were made", b.counted(t), b.engine.fused)
		}
	}
}

func TestReduceSupport(t *testing.T) {
	for env, want := range map[string]int32{"0": 0, "1": 1} {
		b := newBench(t, map[string]string{"WEFT_COLLNET": env})
		for _, c := range []struct {
			dt   abi.DataType
			op   abi.RedOp
			want int32
		}{{abi.Int8, abi.Sum, want}, {abi.Float8e5m2, abi.Min, want}, {abi.Float32, abi.Avg, 0}, {abi.NumTypes, abi.Sum, 0}, {99, 99, 0}} {
			got := int32(7)
			if err := b.collNet().ReduceSupport(&abi.CollNetReduceSupportArgs{DataType: c.dt, RedOp: c.op, Supported: &got}); err != nil || got != c.want {
				t.Errorf("WEFT_COLLNET=%s: type %d, operation %d: %d, %v", env, c.dt, c.op, got, err)
			}
		}
	}
}

// overLoopback are ranks in this process, each with a core of its own.
func overLoopback(t *testing.T, n int, table int32) (all []*bench, comms []uintptr) {
	t.Helper()
	all, comms = make([]*bench, n), make([]uintptr, n)
	handles, doors := make([]*[128]byte, n), make([]uintptr, n)
	for r := range all {
		b := newBench(t, map[string]string{"WEFT_COLLNET": "1", "WEFT_TIMEOUT": "5"})
		b.start = openTransport
		b.devices = func(*knob.Values, report.Logger) ([]*tcp.Device, error) {
			return []*tcp.Device{{Streams: 1, Device: rdma.Device{Name: "lo", MTU: 65536, IfIndex: 1, Pointers: rdma.MemHost, MaxComms: rdma.MaxComms, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}}, nil
		}
		ctx := b.begin(t, table)
		handles[r] = &[128]byte{}
		if err := b.collNet().Listen(&abi.CollNetListenArgs{Ctx: ctx, Handle: pointer(handles[r]), ListenComm: &doors[r]}); err != nil {
			t.Fatal(err)
		}
		all[r] = b
	}
	var wg sync.WaitGroup
	for r, b := range all {
		wg.Go(func() {
			if err := b.collNet().Connect(&abi.CollNetConnectArgs{Handles: pointers(handles), Nranks: int32(n), Rank: int32(r), ListenComm: doors[r], CollComm: &comms[r]}); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			if err := b.collNet().CloseListen(&abi.CollNetCloseListenArgs{ListenComm: doors[r]}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all, comms
}

// words is memory of 32-bit numbers.
func (b *bench) words(t *testing.T, comm uintptr, n int) (numbers []int32, address, handle uintptr) {
	t.Helper()
	m, err := unix.Mmap(-1, 0, 4*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	numbers, address = asNumbers(m)
	if err := b.collNet().RegMr(&abi.CollNetRegMrArgs{CollComm: comm, Data: address, Size: uint64(4 * n), Type: abi.NCCL_PTR_HOST, Mhandle: &handle}); err != nil {
		t.Fatal(err)
	}
	return numbers, address, handle
}

const patience = 30 * time.Second

func (b *bench) ends(t *testing.T, request uintptr) int32 {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
		if v := b.host.requests.get(request); v != -1 {
			return v
		}
	}
	t.Error("a request does not end")
	return -1
}

// All three collectives over the real core, through the newest and an old table.
func TestCollectivesOverLoopback(t *testing.T) {
	for _, c := range []struct {
		n     int
		table int32
	}{{1, abi.NetNewest}, {2, 4}, {3, abi.NetNewest}, {5, 8}} {
		t.Run(fmt.Sprintf("%d ranks, v%d", c.n, c.table), func(t *testing.T) {
			all, comms := overLoopback(t, c.n, c.table)
			const part = 100_000
			size := part * c.n
			var wg sync.WaitGroup
			for r, b := range all {
				wg.Go(func() {
					p, comm := b.collNet(), comms[r]
					send, from, sendHandle := b.words(t, comm, size)
					recv, to, recvHandle := b.words(t, comm, size)
					for i := range send {
						send[i] = int32(i * (r + 1))
					}
					sum := int32(c.n * (c.n + 1) / 2)
					var request uintptr
					do := func(err error) {
						if err != nil || request == 0 {
							t.Errorf("rank %d: request %d, %v", r, request, err)
						} else if code := b.ends(t, request); code != 0 {
							t.Errorf("rank %d: code %d, %v", r, code, b.host.said)
						}
					}
					do(p.Iallreduce(&abi.CollNetIallreduceArgs{CollComm: comm, SendData: from, RecvData: to, Count: uint64(size), DataType: abi.Int32, RedOp: abi.Sum, SendMhandle: sendHandle, RecvMhandle: recvHandle, Request: &request}))
					if recv[1] != sum || recv[size-1] != int32(size-1)*sum {
						t.Errorf("rank %d: all-reduce: %d", r, recv[size-1])
					}
					parts := abi.NetSGE{Mhandle: recvHandle, Address: to, Size: uint64(4 * size)}
					do(p.Iallgather(&abi.CollNetIallgatherArgs{CollComm: comm, SendData: from, NRecvParts: 1, RecvParts: &parts, BytesPerRank: 4 * part, WindowBytes: uint64(4 * size), SendMhandle: sendHandle, Request: &request}))
					for i, v := range recv {
						if v != int32(i%part*(i/part+1)) {
							t.Errorf("rank %d: all-gather: element %d is %d", r, i, v)
							break
						}
					}
					parts = abi.NetSGE{Mhandle: sendHandle, Address: from, Size: uint64(4 * size)}
					do(p.Ireducescatter(&abi.CollNetIreducescatterArgs{CollComm: comm, NSendParts: 1, SendParts: &parts, RecvData: to, BytesPerRank: 4 * part, WindowBytes: uint64(4 * size), DataType: abi.Int32, RedOp: abi.Sum, RecvMhandle: recvHandle, Request: &request}))
					for i, v := range recv[:part] {
						if v != int32(r*part+i)*sum {
							t.Errorf("rank %d: reduce-scatter: element %d is %d", r, i, v)
							break
						}
					}
					if err := p.Iflush(&abi.CollNetIflushArgs{CollComm: comm, Data: to, Size: 4, Mhandle: recvHandle, Request: &request}); err != nil || request != 0 {
						t.Errorf("flush: request %d, %v", request, err)
					}
					for _, h := range []uintptr{sendHandle, recvHandle, 0} {
						if err := p.DeregMr(&abi.CollNetDeregMrArgs{CollComm: comm, Mhandle: h}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for r, b := range all {
				if err := b.collNet().CloseColl(&abi.CollNetCloseCollArgs{CollComm: comms[r]}); err != nil {
					t.Error(err)
				}
				if w := b.host.lines(levelWarn); len(w) != 0 {
					t.Errorf("rank %d: %v", r, w)
				}
			}
		})
	}
}

// One rank aborts while the others wait for it: they fail, name it, and say that it was an abort.
func TestAbortOverLoopback(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		abortOverLoopback(t, func(b *bench, comm uintptr) {
			if err := b.collNet().CloseColl(&abi.CollNetCloseCollArgs{CollComm: comm}); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("deregister", func(t *testing.T) {
		abortOverLoopback(t, func(b *bench, comm uintptr) {
			_, address, handle := b.words(t, comm, 1<<20)
			var request uintptr
			if err := b.collNet().Iallreduce(&abi.CollNetIallreduceArgs{CollComm: comm, SendData: address, RecvData: address, Count: 1 << 20, DataType: abi.Int32, SendMhandle: handle, RecvMhandle: handle, Request: &request}); err != nil {
				t.Error(err)
			}
			if err := b.collNet().DeregMr(&abi.CollNetDeregMrArgs{CollComm: comm, Mhandle: handle}); err != nil {
				t.Error(err)
			}
			if err := b.collNet().CloseColl(&abi.CollNetCloseCollArgs{CollComm: comm}); err != nil {
				t.Error(err)
			}
		})
	})
}

func abortOverLoopback(t *testing.T, abort func(b *bench, comm uintptr)) {
	t.Helper()
	all, comms := overLoopback(t, 3, abi.NetNewest)
	var wg sync.WaitGroup
	for r, b := range all[:2] {
		wg.Go(func() {
			_, address, handle := b.words(t, comms[r], 1<<20)
			var request uintptr
			if err := b.collNet().Iallreduce(&abi.CollNetIallreduceArgs{CollComm: comms[r], SendData: address, RecvData: address, Count: 1 << 20, DataType: abi.Int32, SendMhandle: handle, RecvMhandle: handle, Request: &request}); err != nil {
				t.Error(err)
				return
			}
			if code := b.ends(t, request); code != resultRemoteError {
				t.Errorf("rank %d: code %d", r, code)
			}
			// One for all connections, of which each has its line at INFO.
			if w := b.host.lines(levelWarn); len(w) != 1 || !strings.Contains(w[0].text, "lost rank 2 of 3") || !strings.Contains(w[0].text, "this is an abort") {
				t.Errorf("rank %d warns %v", r, w)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	abort(all[2], comms[2])
	wg.Wait()
	for r, b := range all[:2] {
		if err := b.collNet().CloseColl(&abi.CollNetCloseCollArgs{CollComm: comms[r]}); err != nil {
			t.Error(err)
		}
	}
}

func TestCollNetTakesNoStrangeHandles(t *testing.T) {
	b := newBench(t, wanted)
	b.begin(t, abi.NetNewest)
	p := b.collNet()
	var out uintptr
	handle := [128]byte{}
	for name, call := range map[string]func() error{
		"listen": func() error {
			return p.Listen(&abi.CollNetListenArgs{Ctx: 77, Handle: pointer(&handle), ListenComm: &out})
		},
		"connect":        func() error { return p.Connect(&abi.CollNetConnectArgs{ListenComm: 77, CollComm: &out}) },
		"regMr":          func() error { return p.RegMr(&abi.CollNetRegMrArgs{CollComm: 77, Mhandle: &out}) },
		"regMrDmaBuf":    func() error { return p.RegMrDmaBuf(&abi.CollNetRegMrDmaBufArgs{CollComm: 77, Mhandle: &out}) },
		"deregMr":        func() error { return p.DeregMr(&abi.CollNetDeregMrArgs{CollComm: 77, Mhandle: 77}) },
		"iallreduce":     func() error { return p.Iallreduce(&abi.CollNetIallreduceArgs{CollComm: 77, Request: &out}) },
		"iallgather":     func() error { return p.Iallgather(&abi.CollNetIallgatherArgs{CollComm: 77, Request: &out}) },
		"ireducescatter": func() error { return p.Ireducescatter(&abi.CollNetIreducescatterArgs{CollComm: 77, Request: &out}) },
		"iflush":         func() error { return p.Iflush(&abi.CollNetIflushArgs{CollComm: 77, Request: &out}) },
		"closeColl":      func() error { return p.CloseColl(&abi.CollNetCloseCollArgs{CollComm: 77}) },
		"closeListen":    func() error { return p.CloseListen(&abi.CollNetCloseListenArgs{ListenComm: 77}) },
		"finalize":       func() error { return p.Finalize(&abi.CollNetFinalizeArgs{Ctx: 77}) },
	} {
		if out = 99; report.CauseOf(call()) != report.Misuse {
			t.Errorf("%s takes what is none", name)
		}
		if out != 0 && out != 99 {
			t.Errorf("%s gives %#x", name, out)
		}
	}
	for _, err := range []error{p.CloseColl(&abi.CollNetCloseCollArgs{}), p.CloseListen(&abi.CollNetCloseListenArgs{}), p.Finalize(&abi.CollNetFinalizeArgs{})} {
		if err != nil {
			t.Error(err)
		}
	}
}
