package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/abi"
	"weft/internal/report"
	"weft/transport/rdma"
)

func TestProperties(t *testing.T) {
	b := newBench(t, nil)
	b.mustInit(abi.NetNewest)
	ndev := int32(-1)
	if err := b.Devices(&abi.NetDevicesArgs{Ndev: &ndev}); err != nil || ndev != 2 {
		t.Fatalf("devices %d, %v", ndev, err)
	}
	for dev := range ndev {
		var p, q abi.NetProperties
		scribble(&p)
		for _, props := range []*abi.NetProperties{&p, &q} {
			if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: dev, Props: props}); err != nil {
				t.Fatal(err)
			}
		}
		if p.Name != q.Name || p.PciPath != q.PciPath {
			t.Error("the strings move")
		}
		if (p.PciPath == nil) != (dev == 1) || p.Name == nil {
			t.Error("a virtual device has no PCI path, every device a name")
		}
		want := abi.NetProperties{
			Guid: uint64(dev), PtrSupport: 1, Speed: 25000, MaxComms: 65536, MaxRecvs: 8, VProps: abi.NetVDeviceProps{Ndevs: 1, Devs: [8]int32{dev}},
			MaxP2pBytes: 1 << 30, MaxCollBytes: 1 << 30, MaxMultiRequestSize: 1, RailId: -1, PlaneId: -1,
		}
		ignore := cmpopts.IgnoreFields(abi.NetProperties{}, "Name", "PciPath")
		if d := cmp.Diff(want, p, ignore, cmp.AllowUnexported(abi.NetProperties{}, abi.NetVDeviceProps{})); d != "" {
			t.Errorf("properties (-want +got):\n%s", d)
		}
	}
	if d := cmp.Diff([]string{"eth0", "/sys/devices/pci0000:00/0000:00:1f.6", "lo"}, b.host.strings); d != "" {
		t.Errorf("C strings (-want +got):\n%s", d)
	}
	for _, a := range []abi.NetGetPropertiesArgs{{Dev: -1, Props: new(abi.NetProperties)}, {Dev: 2, Props: new(abi.NetProperties)}} {
		if err := b.GetProperties(&a); report.CauseOf(err) != report.Misuse {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestPropertiesOfGPUMemory(t *testing.T) {
	b := newBench(t, nil)
	b.gpu = true
	b.mustInit(abi.NetNewest)
	for dev, want := range [][2]int32{{5, 1}, {1, 0}} {
		var p abi.NetProperties
		if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: int32(dev), Props: &p}); err != nil || [2]int32{p.PtrSupport, p.ForceFlush} != want {
			t.Errorf("device %d: ptrSupport %d, forceFlush %d, %v", dev, p.PtrSupport, p.ForceFlush, err)
		}
	}
}

func TestLifeOfAConnection(t *testing.T) {
	for _, table := range []int{abi.NetFirst, 4, 5, 10, tableContext, abi.NetNewest} {
		b := newBench(t, nil)
		ctx := b.mustInit(table)
		fake := b.engine.contexts[0]
		var buffer [128]byte
		var listen, send, recv, mr uintptr
		ok := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("v%d: %s: %v", table, what, err)
			}
		}
		ok("listen", b.Listen(&abi.NetListenArgs{Ctx: ctx, Handle: pointer(&buffer), ListenComm: &listen}))
		if want := map[bool]int{true: 64, false: 128}[table < tableGroups]; fake.size != want {
			t.Errorf("v%d: a handle of %d bytes", table, fake.size)
		}
		sendDev, recvDev := new(abi.NetDeviceHandle), new(abi.NetDeviceHandle)
		connect := &abi.NetConnectArgs{Ctx: ctx, Handle: pointer(&buffer), SendComm: &send, SendDevComm: &sendDev, Config: &abi.NetCommConfig{TrafficClass: 104}}
		accept := &abi.NetAcceptArgs{ListenComm: listen, RecvComm: &recv, RecvDevComm: &recvDev}
		send, recv = 1, 1
		ok("connect, not yet", b.Connect(connect))
		ok("accept, not yet", b.Accept(accept))
		if send != 0 || recv != 0 || sendDev != nil || recvDev != nil || fake.class != 104 {
			t.Errorf("v%d: not yet: %#x %#x, class %d", table, send, recv, fake.class)
		}
		fake.ready = true
		connect.Config, connect.SendDevComm, accept.RecvDevComm = nil, nil, nil
		ok("connect", b.Connect(connect))
		ok("accept", b.Accept(accept))
		if send == 0 || recv == 0 || fake.class != -1 {
			t.Errorf("v%d: %#x %#x, class %d", table, send, recv, fake.class)
		}
		ok("regMr", b.RegMr(&abi.NetRegMrArgs{Comm: send, Type: 1, Mhandle: &mr}))
		ok("regMrDmaBuf", b.RegMrDmaBuf(&abi.NetRegMrDmaBufArgs{Comm: recv, Type: 2, Fd: 7, Mhandle: &mr}))
		if b.engine.comms[send].kind != rdma.MemHost || b.engine.comms[recv].kind != rdma.MemCUDA || b.engine.comms[recv].fd != 7 || mr != 0x9001 {
			t.Errorf("v%d: registration lost an argument", table)
		}
		ok("deregMr", b.DeregMr(&abi.NetDeregMrArgs{Comm: recv, Mhandle: mr}))
		if b.CloseSend(&abi.NetCloseSendArgs{SendComm: recv}) == nil || b.CloseRecv(&abi.NetCloseRecvArgs{RecvComm: send}) == nil {
			t.Errorf("v%d: a comm was closed as the other kind", table)
		}
		ok("closeListen", b.CloseListen(&abi.NetCloseListenArgs{ListenComm: listen}))
		ok("closeSend", b.CloseSend(&abi.NetCloseSendArgs{SendComm: send}))
		ok("closeRecv", b.CloseRecv(&abi.NetCloseRecvArgs{RecvComm: recv}))
		for _, err := range []error{
			b.CloseListen(&abi.NetCloseListenArgs{ListenComm: listen}), b.CloseSend(&abi.NetCloseSendArgs{SendComm: send}),
			b.Accept(accept), b.RegMr(&abi.NetRegMrArgs{Comm: send, Mhandle: &mr}), b.DeregMr(&abi.NetDeregMrArgs{Comm: 2, Mhandle: 0x9001}),
		} {
			if b.done("again", err) != resultInternalError {
				t.Errorf("v%d: after close: %v", table, err)
			}
		}
		if mr != 0 {
			t.Errorf("v%d: a failed regMr left %#x", table, mr)
		}
	}
}

func TestTrafficClassOfTheContext(t *testing.T) {
	b := newBench(t, nil)
	var ctx, send uintptr
	var buffer [128]byte
	if err := b.Init(&abi.NetInitArgs{Table: abi.NetNewest, Ctx: &ctx, Config: &abi.NetCommConfig{TrafficClass: 96}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Connect(&abi.NetConnectArgs{Ctx: ctx, Handle: pointer(&buffer), SendComm: &send}); err != nil {
		t.Fatal(err)
	}
	if f := b.engine.contexts[0]; f.class != 96 || f.options.TrafficClass != 96 {
		t.Errorf("class %d, context's %d", f.class, f.options.TrafficClass)
	}
}

// A class that no packet can carry is none, and said once however often connect is polled.
func TestOddTrafficClass(t *testing.T) {
	b := newBench(t, nil)
	var first, ctx uintptr
	var send uintptr
	var buffer [128]byte
	for class, want := range map[int32]int32{0: 0, 255: 255, 256: -1, -1: -1, -2147483648: -1} {
		if err := b.Init(&abi.NetInitArgs{Table: abi.NetNewest, LogFunction: nccl, Ctx: &ctx, Config: &abi.NetCommConfig{TrafficClass: class}}); err != nil {
			t.Fatal(err)
		}
		if f := b.engine.contexts[len(b.engine.contexts)-1]; f.options.TrafficClass != want {
			t.Errorf("class %d becomes %d", class, f.options.TrafficClass)
		}
	}
	first = b.mustInit(10)
	for range 5 {
		if err := b.Connect(&abi.NetConnectArgs{Ctx: first, Handle: pointer(&buffer), SendComm: &send, Config: &abi.NetCommConfig{TrafficClass: 300}}); err != nil {
			t.Fatal(err)
		}
	}
	if f := b.engine.contexts[len(b.engine.contexts)-1]; f.class != -1 {
		t.Errorf("class %d", f.class)
	}
	if w := b.host.lines(levelWarn, "traffic class"); len(w) != 2 || len(b.host.lines(levelWarn, "traffic class 256")) != 1 || len(b.host.lines(levelWarn, "traffic class 300")) != 1 {
		t.Errorf("%v", w)
	}
}

// A context's hints are asked for when they are needed, and are no other's.
func TestHints(t *testing.T) {
	b := newBench(t, nil)
	ctx, other := b.mustInit(abi.NetNewest), b.mustInit(abi.NetNewest)
	b.host.hints[ctx] = abi.NetAttr{SendCommAttr: abi.NetCommAttr{MaxConcurrentPeers: 1, MinConcurrentPeers: 2, MaxFlowsPerPeer: 3, MinFlowsPerPeer: 4},
		RecvCommAttr: abi.NetCommAttr{MaxConcurrentPeers: 5, MinConcurrentPeers: 6, MaxFlowsPerPeer: 7, MinFlowsPerPeer: 8}, Op: 9, Algo: 10, Proto: 11}
	want := rdma.Attr{Send: rdma.CommAttr{MaxConcurrentPeers: 1, MinConcurrentPeers: 2, MaxFlowsPerPeer: 3, MinFlowsPerPeer: 4},
		Recv: rdma.CommAttr{MaxConcurrentPeers: 5, MinConcurrentPeers: 6, MaxFlowsPerPeer: 7, MinFlowsPerPeer: 8}, Op: 9, Algo: 10, Proto: 11}
	for i, want := range []rdma.Attr{want, {}} {
		if got := b.engine.contexts[i].options.Hints(); got != want {
			t.Errorf("context %d: hints %+v", i, got)
		}
	}
	for _, c := range []uintptr{ctx, other} {
		if err := b.Finalize(&abi.NetFinalizeArgs{Ctx: c}); err != nil {
			t.Error(err)
		}
	}
	if len(b.host.hints) != 0 {
		t.Errorf("%v are kept", b.host.hints)
	}
	b.host.noHints = report.Errorf(report.Host, "init", "no room")
	if code, ctx := b.init(abi.NetNewest, nccl); code != resultSystemError || ctx != 0 || b.engine.contexts[2].closed != 1 || len(b.host.hints) != 0 {
		t.Errorf("without room: %d, context %#x, %v", code, ctx, b.host.hints)
	}
}

// No function crashes on handles that are zero, before init or after. (The shims let no pointer be NULL.)
func TestZerosAreErrors(t *testing.T) {
	b := newBench(t, nil)
	for range 2 {
		for name, err := range map[string]error{
			"listen": b.Listen(&abi.NetListenArgs{ListenComm: new(uintptr)}), "connect": b.Connect(&abi.NetConnectArgs{SendComm: new(uintptr)}),
			"accept": b.Accept(&abi.NetAcceptArgs{RecvComm: new(uintptr)}), "deregMr": b.DeregMr(&abi.NetDeregMrArgs{Mhandle: 1}),
			"regMr": b.RegMr(&abi.NetRegMrArgs{Mhandle: new(uintptr)}), "regMrDmaBuf": b.RegMrDmaBuf(&abi.NetRegMrDmaBufArgs{Mhandle: new(uintptr)}),
			"finalize": b.Finalize(&abi.NetFinalizeArgs{}), "init": b.Init(&abi.NetInitArgs{}),
		} {
			if report.CauseOf(err) != report.Misuse || err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, err := range map[string]error{ // what was never made ends at once
			"closeSend": b.CloseSend(&abi.NetCloseSendArgs{}), "closeRecv": b.CloseRecv(&abi.NetCloseRecvArgs{}),
			"closeListen": b.CloseListen(&abi.NetCloseListenArgs{}), "deregMr": b.DeregMr(&abi.NetDeregMrArgs{}),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.mustInit(8)
	}
}
