package host

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Net calls a net table with NCCL's threads: setup and teardown on the service
// thread (main before v5, whose releases had none), data on the progress thread.
type Net struct {
	*Table
	Ctx     Ptr // set by Init from v11 on
	Setup   string
	Data    string
	Version int
}

// BindNet binds ncclNetPlugin_v<version>.
func (l *Lib) BindNet(version int) (*Net, error) { return l.BindNetAs(version, "") }

// BindNetAs is BindNet for a second table in the same host.
func (l *Lib) BindNetAs(version int, as string) (*Net, error) {
	t, err := l.Bind(FamilyNet, version, as)
	if err != nil {
		return nil, err
	}
	n := &Net{Table: t, Version: version, Setup: "service", Data: "progress"}
	if version < SinceGroups {
		n.Setup = "main"
	}
	return n, nil
}

// On is the same table with every call on one thread.
func (n *Net) On(thread string) *Net {
	c := *n
	c.Setup, c.Data = thread, thread
	return &c
}

// HandleSize is NCCL_NET_HANDLE_MAXSIZE of the releases that use this table.
func (n *Net) HandleSize() int {
	if n.Version < SinceGroups {
		return 64
	}
	return 128
}

// Grouped tells whether irecv takes several buffers and tags.
func (n *Net) Grouped() bool { return n.Version >= SinceGroups }

// Init calls init on the main thread and keeps the context.
func (n *Net) Init(extra ...any) error {
	r, err := n.Table.Call("main", "init", Args(extra))
	n.Ctx = r.Ptr("ctx")
	return err
}

// Devices is the number of devices.
func (n *Net) Devices() (int, error) {
	r, err := n.Table.Call("main", "devices", nil)
	return int(r.Int("n")), err
}

// MakeVDevice makes one device of several.
func (n *Net) MakeVDevice(devs []int) (int, error) {
	r, err := n.Table.Call("main", "makeVDevice", Args{"devs", devs, "n", len(devs), "d", -1})
	return int(r.Int("d")), err
}

// Props are a device's properties; fields that the version lacks are zero.
type Props struct {
	Name, PCIPath       string // "(null)" for a NULL pointer
	GUID                uint64
	PtrSupport          int
	RegIsGlobal         int
	ForceFlush          int
	Speed, Port         int
	Latency             float64
	MaxComms, MaxRecvs  int
	NetDeviceType       int
	NetDeviceVersion    int
	VDevs               []int64
	NVDevs              int64
	MaxP2pBytes         uint64
	MaxCollBytes        uint64
	MaxMultiRequestSize int64
	RailID, PlaneID     int
	Raw                 map[string]string
}

// Props calls getProperties (pciPath and ptrSupport in v2).
func (n *Net) Props(dev int, extra ...any) (*Props, error) {
	r, err := n.Table.Call("main", "props", append(Args{"dev", dev}, extra...))
	return props(r), err
}

func props(r *Reply) *Props {
	p := &Props{Name: r.Str("name"), PCIPath: r.Str("pciPath"), GUID: uint64(r.Ptr("guid")),
		PtrSupport: int(r.Int("ptrSupport")), RegIsGlobal: int(r.Int("regIsGlobal")), ForceFlush: int(r.Int("forceFlush")),
		Speed: int(r.Int("speed")), Port: int(r.Int("port")), Latency: r.Float("latency"),
		MaxComms: int(r.Int("maxComms")), MaxRecvs: int(r.Int("maxRecvs")),
		NetDeviceType: int(r.Int("netDeviceType")), NetDeviceVersion: int(r.Int("netDeviceVersion")),
		MaxP2pBytes: uint64(r.Ptr("maxP2pBytes")), MaxCollBytes: uint64(r.Ptr("maxCollBytes")),
		MaxMultiRequestSize: r.Int("maxMultiRequestSize"), RailID: int(r.Int("railId")), PlaneID: int(r.Int("planeId")), Raw: r.Values}
	if head, list, ok := strings.Cut(r.Str("vProps"), ":"); ok {
		p.NVDevs, _ = strconv.ParseInt(head, 0, 64)
		p.VDevs = (&Reply{Values: map[string]string{"v": list}}).Ints("v")
	}
	return p
}

// Listen allocates a handle buffer and listens on a device.
func (n *Net) Listen(dev int) (handle, comm Ptr, err error) {
	handle, err = n.h.Alloc(128)
	if err != nil {
		return 0, 0, err
	}
	r, err := n.Table.Call(n.Setup, "listen", Args{"ctx", n.Ctx, "dev", dev, "handle", handle})
	return handle, r.Ptr("comm"), err
}

// Connect calls connect once; a comm of 0 means not yet.
func (n *Net) Connect(dev int, handle Ptr) (Ptr, error) {
	r, err := n.Table.Call(n.Setup, "connect", Args{"ctx", n.Ctx, "dev", dev, "handle", handle})
	return r.Ptr("comm"), err
}

// Accept calls accept once; a comm of 0 means not yet.
func (n *Net) Accept(listen Ptr) (Ptr, error) {
	r, err := n.Table.Call(n.Setup, "accept", Args{"listen", listen})
	return r.Ptr("comm"), err
}

// ConnectPoll repeats connect until there is a comm.
func (n *Net) ConnectPoll(dev int, handle Ptr, limit time.Duration) (Ptr, error) {
	r, err := n.Table.Call(n.Setup, "connect", Args{"ctx", n.Ctx, "dev", dev, "handle", handle, "poll", 1, "limit", limit})
	return r.Ptr("comm"), err
}

// AcceptPoll repeats accept until there is a comm.
func (n *Net) AcceptPoll(listen Ptr, limit time.Duration) (Ptr, error) {
	r, err := n.Table.Call(n.Setup, "accept", Args{"listen", listen, "poll", 1, "limit", limit})
	return r.Ptr("comm"), err
}

// ConnectAccept is what NCCL does for a ring on one thread: connect to the next and
// accept from the previous rank, in turn; before v5, where both may block, all of
// connect comes first.
func (n *Net) ConnectAccept(dev int, handle, listen Ptr, limit time.Duration) (send, recv Ptr, err error) {
	for until := time.Now().Add(limit); ; time.Sleep(100 * time.Microsecond) {
		if send == 0 {
			if send, err = n.Connect(dev, handle); err != nil {
				return send, recv, err
			}
		}
		if recv == 0 && (send != 0 || n.Version >= SinceGroups) {
			if recv, err = n.Accept(listen); err != nil {
				return send, recv, err
			}
		}
		if send != 0 && recv != 0 {
			return send, recv, nil
		}
		if time.Now().After(until) {
			return send, recv, &CommandError{Call: "connect and accept", Word: "deadline", Msg: fmt.Sprintf("connected: %t, accepted: %t after %v", send != 0, recv != 0, limit)}
		}
	}
}

// RegMr registers host memory (type 1 = NCCL_PTR_HOST).
func (n *Net) RegMr(comm, data Ptr, size int64) (Ptr, error) {
	r, err := n.Table.Call(n.Setup, "regMr", Args{"comm", comm, "data", data, "size", size, "type", 1})
	return r.Ptr("mh"), err
}

// DeregMr is deregMr.
func (n *Net) DeregMr(comm, mh Ptr) error {
	_, err := n.Table.Call(n.Setup, "deregMr", Args{"comm", comm, "mh", mh})
	return err
}

// Isend calls isend once; a request of 0 means not now.
func (n *Net) Isend(comm, data Ptr, size int64, tag int, mh Ptr, extra ...any) (Ptr, error) {
	r, err := n.Table.Call(n.Data, "isend", append(Args{"comm", comm, "data", data, "size", size, "tag", tag, "mh", mh}, extra...))
	return r.Ptr("req"), err
}

// Recv is one buffer of a grouped receive.
type Recv struct {
	Data Ptr
	Size int64
	Tag  int
	MH   Ptr
	PH   Ptr
}

// Irecv calls irecv once; a request of 0 means not now.
func (n *Net) Irecv(comm Ptr, bufs []Recv, extra ...any) (Ptr, error) {
	r, err := n.Table.Call(n.Data, "irecv", append(group(comm, bufs), extra...))
	return r.Ptr("req"), err
}

// Iflush calls iflush (flush up to v3); a request of 0 means nothing to wait for.
func (n *Net) Iflush(comm Ptr, bufs []Recv) (Ptr, error) {
	r, err := n.Table.Call(n.Data, "iflush", group(comm, bufs))
	return r.Ptr("req"), err
}

func group(comm Ptr, bufs []Recv) Args {
	var data, mh, ph []Ptr
	var size []int64
	var tag []int
	for _, b := range bufs {
		data, mh, ph = append(data, b.Data), append(mh, b.MH), append(ph, b.PH)
		size, tag = append(size, b.Size), append(tag, b.Tag)
	}
	return Args{"comm", comm, "n", len(bufs), "data", data, "size", size, "tag", tag, "mh", mh, "ph", ph}
}

// Test calls test once; sizes has n entries.
func (n *Net) Test(req Ptr, count int) (done bool, sizes []int64, err error) {
	r, err := n.Table.Call(n.Data, "test", Args{"req", req, "n", count})
	return r.Int("done") != 0, r.Ints("size"), err
}

// Wait repeats test until the request is done.
func (n *Net) Wait(req Ptr, count int, limit time.Duration) (sizes []int64, err error) {
	r, err := n.h.CallIn(limit+30*time.Second, n.Data, "net.test", Args{"on", n.As, "req", req, "n", count, "poll", 1, "limit", limit})
	return r.Ints("size"), err
}

// CloseSend, CloseRecv and CloseListen close a comm.
func (n *Net) CloseSend(comm Ptr) error { return n.close("closeSend", comm) }

// CloseRecv closes a receiving comm.
func (n *Net) CloseRecv(comm Ptr) error { return n.close("closeRecv", comm) }

// CloseListen closes a listening comm.
func (n *Net) CloseListen(comm Ptr) error { return n.close("closeListen", comm) }

func (n *Net) close(slot string, comm Ptr) error {
	_, err := n.Table.Call(n.Setup, slot, Args{"comm", comm})
	return err
}

// Finalize ends the context (v11 and later; before, there is nothing to call).
func (n *Net) Finalize() error {
	if n.Version < SinceContexts {
		return nil
	}
	_, err := n.Table.Call("main", "finalize", Args{"ctx", n.Ctx})
	return err
}
