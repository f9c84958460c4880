package conform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/simverbs"
)

// loaded is a process with a table of the library.
func loaded(t *testing.T, version int, env ...string) (*host.Net, *host.Host) {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Start(host.Options{Bin: hostProgram(t), Name: fmt.Sprintf("v%d", version), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := h.Load(lib)
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.BindNet(version)
	if err != nil {
		t.Fatal(err)
	}
	return n, h
}

// bound is such a process after init.
func bound(t *testing.T, version int, env ...string) *host.Net {
	t.Helper()
	n, _ := loaded(t, version, env...)
	if err := n.Init(); err != nil {
		t.Fatal(err)
	}
	return n
}

// told is what a table tells of a device, as far as its release has it; a field
// that no test can foresee is left out.
func told(n *host.Net, dev int) (string, error) {
	x, err := n.Props(dev, "fill", 0)
	if err != nil {
		return "", err
	}
	pci := "none"
	if x.PCIPath != "(null)" && x.PCIPath != "(fill00)" {
		pci = filepath.Base(x.PCIPath)
	}
	s := fmt.Sprintf("%s, PCI %s, memory %d", x.Name, pci, x.PtrSupport)
	add := func(from int, format string, a ...any) {
		if n.Version >= from {
			s += fmt.Sprintf(", "+format, a...)
		}
	}
	add(3, "%d Mb/s, port %d, %d comms, guid %v", x.Speed, x.Port, x.MaxComms, x.GUID != 0)
	add(5, "latency %v, %d receives", x.Latency, x.MaxRecvs)
	add(8, "registrations shared %d", x.RegIsGlobal)
	add(9, "flush forced %d, made of %v", x.ForceFlush, x.VDevs)
	add(7, "device type %d version %d", x.NetDeviceType, x.NetDeviceVersion)
	add(9, "at most %d and %d bytes", x.MaxP2pBytes>>20, x.MaxCollBytes>>20)
	add(11, "%d in a request", x.MaxMultiRequestSize)
	add(12, "rail %d, plane %d", x.RailID, x.PlaneID)
	return s, nil
}

// cut keeps what a release can tell of the newest one's text.
func cut(text string, version int) string {
	var kept []string
	for part := range strings.SplitSeq(text, ", ") {
		from := 0
		for _, f := range []struct {
			prefix string
			from   int
		}{
			{"latency", 5}, {"8 receives", 5}, {"registrations", 8}, {"flush", 9}, {"made of", 9}, {"device type", 7}, {"at most", 9}, {"1 in a", 11}, {"rail", 12}, {"plane", 12},
			{"Mb/s", 3}, {"port", 3}, {"comms", 3}, {"guid", 3},
		} {
			if strings.Contains(part, f.prefix) {
				from = f.from
			}
		}
		if version >= from {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ", ")
}

// TestDevicesAsEveryReleaseSeesThem compares what each table tells of two RDMA
// devices, the second with two ports, and of interfaces without RDMA.
func TestDevicesAsEveryReleaseSeesThem(t *testing.T) {
	env := append(simulated(t,
		simverbs.Device{Name: "sim1", PCI: "0000:82:00.0", Link: "infiniband", Ports: []simverbs.Port{{}, {}}, MaxQP: 500},
		simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}, Speed: 400000, MaxQP: 1000},
	), "NCCL_IB_HCA=sim0:1:3:1,sim1:2:4:2,sim1")
	const common = "latency 0, 8 receives, registrations shared 1, flush forced 0, made of [%d], device type 0 version 0, at most 1024 and 1024 bytes, 1 in a request, rail %d, plane %d"
	rdma := []string{
		"sim0, PCI 0000:81:00.0, memory 5, 400000 Mb/s, port 1, 1000 comms, guid true, " + fmt.Sprintf(common, 0, 3, 1),
		"sim1, PCI 0000:82:00.0, memory 5, 100000 Mb/s, port 1, 500 comms, guid true, " + fmt.Sprintf(common, 1, -1, -1),
		"sim1:2, PCI 0000:82:00.0, memory 5, 100000 Mb/s, port 3, 500 comms, guid true, " + fmt.Sprintf(common, 2, 4, 2),
	}
	first, last := host.FamilyNet.Versions()
	for v := first; v <= last; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			n := bound(t, v, env...)
			count, err := n.Devices()
			if err != nil || count != len(rdma) {
				t.Fatalf("%d devices, %v", count, err)
			}
			for dev, want := range rdma {
				want = cut(want, v)
				if v < host.SinceRemoteError { // these releases know two kinds of memory
					want = strings.Replace(want, "memory 5", "memory 1", 1)
				}
				if v == 2 {
					want = want[strings.Index(want, ", "):] // it does not tell a name
				}
				if got, err := told(n, dev); err != nil || got != want {
					t.Errorf("device %d: %v\ngot  %s\nwant %s", dev, err, got, want)
				}
			}
			tcp := bound(t, v, "NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME==lo")
			want := cut("lo, PCI none, memory 1, 10000 Mb/s, port 0, 65536 comms, guid false, "+strings.Replace(fmt.Sprintf(common, 0, -1, -1), "shared 1", "shared 0", 1), v)
			if got, err := told(tcp, 0); err != nil || got != want && v > 2 {
				t.Errorf("lo: %v\ngot  %s\nwant %s", err, got, want)
			}
		})
	}
}

// A device of ours is a host device in every release: no table offers device
// code anything, and connect and accept leave the handles for it NULL.
func TestDeviceNetworkingIsDeclined(t *testing.T) {
	rdma := simulated(t, simverbs.Device{Name: "sim0", GIDs: []string{"10.101.0.1/24"}})
	for v := host.SinceDeviceCode; v <= newest; v++ {
		for over, env := range map[string][]string{"tcp": {"NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME==lo"}, "sim0": rdma} {
			t.Run(fmt.Sprintf("v%d over %s", v, over), func(t *testing.T) {
				t.Parallel()
				n, h := loaded(t, v, env...)
				if err := n.Init(); err != nil {
					t.Fatal(err)
				}
				if n.Slots["getDeviceMr"] || n.Slots["irecvConsumed"] {
					t.Errorf("slots %v", n.Slots)
				}
				handle := host.Args{"devcomm", 0xdead}
				connection(t, n, handle, handle, func(slot string, r *host.Reply) {
					if !r.Has("devcomm") || r.Ptr("devcomm") != 0 {
						t.Fatalf("%s gives the device handle %q", slot, r.Str("devcomm"))
					}
				})
				if !slices.ContainsFunc(h.Logs(), func(l host.LogLine) bool { return strings.Contains(l.Text, " over "+over) }) {
					t.Errorf("no connection over %s", over)
				}
			})
		}
	}
}

// connection connects n's device 0 with itself, with more arguments for either
// side's calls and a look at each answer, and closes.
func connection(t *testing.T, n *host.Net, connect, accept host.Args, look func(slot string, r *host.Reply)) {
	t.Helper()
	handle, lc, err := n.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	connect = append(host.Args{"ctx", n.Ctx, "dev", 0, "handle", handle}, connect...)
	accept = append(host.Args{"listen", lc}, accept...)
	var send, recv host.Ptr
	for end := time.Now().Add(time.Minute); send == 0 || recv == 0; {
		if time.Now().After(end) {
			t.Fatal("no connection within a minute")
		}
		for _, side := range []struct {
			slot string
			args host.Args
			comm *host.Ptr
		}{{"connect", connect, &send}, {"accept", accept, &recv}} {
			if *side.comm != 0 {
				continue
			}
			r, err := n.Table.Call(n.Setup, side.slot, side.args)
			if err != nil {
				t.Fatal(err)
			}
			look(side.slot, r)
			*side.comm = r.Ptr("comm")
		}
	}
	for _, err := range []error{n.CloseSend(send), n.CloseRecv(recv), n.CloseListen(lc)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// joined is what n's host logs of the two ends of a connection with itself.
func joined(t *testing.T, n *host.Net, h *host.Host, connect ...any) (sends, receives string) {
	t.Helper()
	connection(t, n, connect, nil, func(string, *host.Reply) {})
	for _, l := range h.Logs() {
		switch {
		case strings.Contains(l.Text, " -> ") && strings.Contains(l.Text, " over "):
			sends = l.Text
		case strings.Contains(l.Text, " <- ") && strings.Contains(l.Text, " over "):
			receives = l.Text
		}
	}
	return sends, receives
}

// TestTrafficClassOfEveryRelease gives a class as each table lets a host do it:
// not at all up to v9, with a connection in v10, with a communicator from v11 on.
// The TOS in the line of a TCP connection was asked back from the kernel.
func TestTrafficClassOfEveryRelease(t *testing.T) {
	env := simulated(t, simverbs.Device{Name: "sim0", GIDs: []string{"10.101.0.1/24"}})
	for _, c := range []struct {
		version        int
		init, connect  host.Args
		more           string // of the environment
		rdma, receiver string
		tos            string
	}{
		{9, nil, nil, "", "SL 0, TC 0,", "SL 0, TC 0,", "TOS 0,"},
		{10, nil, host.Args{"class", 104}, "", "SL 0, TC 104,", "SL 0, TC 104,", "TOS 104,"},
		{10, nil, host.Args{"config", 0}, "", "SL 0, TC 0,", "SL 0, TC 0,", "TOS 0,"},
		{11, host.Args{"class", 8}, nil, "", "SL 8, TC 8,", "SL 8, TC 8,", "TOS 8,"},
		{newest, host.Args{"class", 96}, nil, "", "SL 0, TC 96,", "SL 0, TC 96,", "TOS 96,"},
		{newest, host.Args{"class", 96}, nil, "NCCL_IB_FIFO_TC=16", "SL 0, TC 96,", "SL 0, TC 16,", "TOS 96,"},
		{newest, host.Args{"class", 96}, nil, "NCCL_IB_TC=32", "SL 0, TC 32,", "SL 0, TC 32,", "TOS 96,"},
		{newest, host.Args{"class", 96}, nil, "NCCL_IB_SL=3", "SL 3, TC 96,", "SL 3, TC 96,", "TOS 96,"},
		{newest, host.Args{"class", 96}, nil, "NCCL_SOCKET_TOS_CONFIG=40", "SL 0, TC 96,", "SL 0, TC 96,", "TOS 40,"},
	} {
		t.Run(fmt.Sprintf("v%d %v %v %s", c.version, c.init, c.connect, c.more), func(t *testing.T) {
			n, h := loaded(t, c.version, append(env, c.more)...)
			if err := n.Init(c.init...); err != nil {
				t.Fatal(err)
			}
			sends, receives := joined(t, n, h, c.connect...)
			if !strings.Contains(sends, " over sim0") || !strings.Contains(sends, c.rdma) || !strings.Contains(receives, c.receiver) {
				t.Errorf("by RDMA:\n%s\n%s\nwant %s and %s", sends, receives, c.rdma, c.receiver)
			}
			n, h = loaded(t, c.version, "NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME==lo", c.more)
			if err := n.Init(c.init...); err != nil {
				t.Fatal(err)
			}
			sends, _ = joined(t, n, h, c.connect...)
			if !strings.Contains(sends, " over tcp") || !strings.Contains(sends, c.tos) {
				t.Errorf("by TCP:\n%s\nwant %s", sends, c.tos)
			}
		})
	}
}

// newest is the net table that tests bind where no other is meant.
var newest = host.FamilyNet.Newest()

// TestHints gives what NCCL 2.28 and later say before they connect, and while they
// move data: connections made from then on use more of their queue pairs for a
// message the fewer are busy at a time.
func TestHints(t *testing.T) {
	env := append(simulated(t, simverbs.Device{Name: "sim0", GIDs: []string{"10.101.0.1/24"}}), "NCCL_IB_QPS_PER_CONNECTION=4")
	first := func(peers, flows int) []int { return []int{peers, 1, flows, 1, peers, 1, flows, 1} }
	const all, ring, ll = 0xffffffff, 1 << 1, 1 << 0
	for _, c := range []struct {
		name            string
		attr            []int
		op, algo, proto uint32
		says            string
	}{
		{"two ranks, one channel", first(2, 1), all, all, all, "2 QPs per message"},
		{"many channels", first(2, 16), all, all, all, "1 QP per message"},
		{"one peer at a time", first(1, 1), 1 << 4, ring, ll, "4 QPs per message"},
		{"nothing", []int{-1, -1, -1, -1, -1, -1, -1, -1}, all, all, all, "1 QP per message"},
		{"a ring with one channel", []int{-1, -1, 1, -1, -1, -1, 1, -1}, all, ring, all, "4 QPs per message"},
	} {
		for _, version := range []int{host.SinceContexts, newest} {
			t.Run(fmt.Sprintf("v%d %s", version, c.name), func(t *testing.T) {
				n, h := loaded(t, version, env...)
				if err := n.Init(); err != nil {
					t.Fatal(err)
				}
				if _, err := n.Table.Call(n.Setup, "setNetAttr", host.Args{"ctx", n.Ctx, "op", c.op, "algo", c.algo, "proto", c.proto, "attr", c.attr}); err != nil {
					t.Fatal(err)
				}
				if sends, receives := joined(t, n, h); !strings.Contains(sends, c.says) || !strings.Contains(receives, c.says) {
					t.Errorf("%s\n%s\nwant %s", sends, receives, c.says)
				}
			})
		}
	}
}
