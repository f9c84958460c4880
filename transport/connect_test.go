package transport

import (
	"net"
	"testing"

	"weft/transport/comms"
	"weft/transport/fastpath"
	"weft/transport/tcp"
	"weft/transport/wire"
)

func TestConnectAccept(t *testing.T) {
	for _, tc := range []struct {
		name    string
		addr    string
		streams int
		size    int
	}{
		{"IPv4 64", "127.0.0.1/8", 1, wire.HandleMin},
		{"IPv4 128", "127.0.0.1/8", 1, wire.HandleMax},
		{"IPv6 64", "::1/128", 1, wire.HandleMin},
		{"IPv6 128", "::1/128", 1, wire.HandleMax},
		{"8 streams", "127.0.0.1/8", 8, wire.HandleMax},
		{"64 streams", "127.0.0.1/8", 64, wire.HandleMax},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := start(t, nil, netDevice(0, "lo", 1, tc.addr))
			b := start(t, nil, netDevice(0, "lo", tc.streams, tc.addr))
			l, h := b.listen(t, tc.size)
			before := string(h)
			send, err := a.connect(h)
			if err != nil {
				t.Fatal(err)
			}
			if string(h) != before {
				t.Error("the handle is not as it was once connect is done")
			}
			recv, err := accept(l)
			if err != nil {
				t.Fatal(err)
			}
			if len(fdsOf(send)) != tc.streams || len(fdsOf(recv)) != tc.streams {
				t.Errorf("%d and %d streams, the listener has %d", len(fdsOf(send)), len(fdsOf(recv)), tc.streams)
			}
			if c, err := comms.Of(send.Handle(), fastpath.Send); c != send || err != nil {
				t.Errorf("%v %v", c, err)
			}
			if _, err := comms.Of(send.Handle(), fastpath.Recv); err == nil {
				t.Error("a send comm passed for a receive comm")
			}
			for p, pair := range map[*process]string{a: "lo -> lo of ", b: "lo <- lo of "} {
				if p.log.Count("INFO NET", pair, "over tcp", "stream", "MTU", "MSS", "TOS") != 1 {
					t.Errorf("log: %q", p.log.Lines())
				}
			}
			for _, err := range []error{send.Close(), recv.Close(), l.Close()} {
				if err != nil {
					t.Error(err)
				}
			}
			if _, err := comms.Of(send.Handle(), fastpath.Send); err == nil {
				t.Error("a closed comm is still found")
			}
		})
	}
}

// TestLinkLocal uses an fe80 address of this machine: it needs its interface
// as zone on both sides, and the handle carries none.
func TestLinkLocal(t *testing.T) {
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		addrs, _ := link.Addrs()
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok || n.IP.To4() != nil || !n.IP.IsLinkLocalUnicast() || link.Flags&net.FlagRunning == 0 {
				continue
			}
			dev := netDevice(0, link.Name, 1, n.String())
			dev.IfIndex = link.Index
			s, r := pair(t, start(t, nil, dev), start(t, nil, dev))
			move(t, s, r, 1000)
			return
		}
	}
	t.Skip("no running interface has a link-local IPv6 address")
}

// TestTOS reads the byte back from the kernel: on both ends of a comm's streams
// and of the control connection, whoever asked for it.
func TestTOS(t *testing.T) {
	env := map[string]string{"NCCL_SOCKET_TOS_CONFIG": "96"}
	for _, addr := range []string{"127.0.0.1/8", "::1/128"} {
		a := start(t, env, netDevice(0, "lo", 2, addr))
		b := start(t, env, netDevice(0, "lo", 2, addr))
		send, recv := pair(t, a, b)
		fds := append(fdsOf(send), fdsOf(recv)...)
		for _, c := range []*Comm{send, recv} {
			fds = append(fds, c.Member().Session.Conn.FD)
		}
		for i, fd := range fds {
			if tos := tcp.ReadFacts(fd).TOS; tos != 96 {
				t.Errorf("%s: socket %d has TOS %d, want 96", addr, i, tos)
			}
		}
	}
}

// fdsOf are the sockets of a comm's streams.
func fdsOf(c *Comm) (all []int) {
	c.Carrier().(tcp.Streams).Each(func(_, fd int) { all = append(all, fd) })
	return all
}

// An address of this host is reached over lo, whichever device was asked for.
func TestTheLineNamesTheInterface(t *testing.T) {
	asked := func(p string) *process { return start(t, nil, netDevice(0, p, 2, "127.0.0.1/8")) }
	a, b := asked("eth7"), asked("eth8")
	s, r := pair(t, a, b)
	defer s.Close()
	defer r.Close()
	for p, begin := range map[*process]string{a: "eth7 -> eth8 of ", b: "eth8 <- eth7 of "} {
		if p.log.Count("INFO NET "+begin, "over tcp", ", 2 streams (lo 127.0.0.1 to 127.0.0.1), MTU 6553") != 1 {
			t.Errorf("%q", p.log.Lines())
		}
	}
}
