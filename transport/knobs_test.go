package transport

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/effect"
	"weft/internal/hostcalls"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// effects are the knobs that this package gives their effect: a setting, and
// what is seen without and with it. A test of internal/knob reads the names.
var effects = []struct {
	name, value   string
	see           func(t *testing.T, env map[string]string) string
	without, with string
}{
	{"NCCL_SOCKET_NTHREADS", "3", seeStreams, "1 stream", "3 streams"},
	{"NCCL_NSOCKS_PERTHREAD", "2", beside("NCCL_SOCKET_NTHREADS=3", seeStreams), "3 streams", "6 streams"},
	{"NCCL_SOCKET_RETRY_CNT", "2", beside("NCCL_SOCKET_RETRY_SLEEP_MSEC=1", seeRounds), "35 rounds", "3 rounds"},
	{"NCCL_SOCKET_RETRY_SLEEP_MSEC", "600000", beside("NCCL_SOCKET_RETRY_CNT=2 WEFT_CONNECT_TIMEOUT=2", seeRounds), "3 rounds", "1 rounds"},
	{"NCCL_SOCKET_RCVBUF", "60000", seeBuffer(unix.SO_RCVBUF, 2*60000), "the kernel's", "as set"}, // the kernel doubles it
	{"NCCL_SOCKET_SNDBUF", "60000", seeBuffer(unix.SO_SNDBUF, 2*60000), "the kernel's", "as set"},
	{"NCCL_SOCKET_TOS_CONFIG", "0x68", seeTOS, "0 0 0 0", "104 104 104 104"},
	{"NCCL_IB_QPS_PER_CONNECTION", "3", seeLanes, "1 lane", "3 lanes"},
	{"NCCL_IB_SPLIT_DATA_ON_QPS", "1", beside("NCCL_IB_QPS_PER_CONNECTION=4 WEFT_LAZY=off", seeSplit), "1 of 4 lanes", "4 of 4 lanes"},
	{"NCCL_IB_ADAPTIVE_ROUTING", "1", seeRequests("=simA", "=simB"), "1 request", "2 requests"},
	{"NCCL_IB_AR_THRESHOLD", "150000", seeRequests("=simI", "=simJ"), "2 requests", "1 request"},
	{"NCCL_IB_OOO_RQ", "1", beside("NCCL_IB_ADAPTIVE_ROUTING=1", seeOrder), "2 requests", "1 request"},
	{"NCCL_IB_MERGE_NICS", "0", seeFusion, "3 devices", "2 devices"},
	{"NCCL_IB_WARN_RAIL_LOCAL", "1", seeRails, "", "simA (rail -1) here and simB (rail -1) there"},
	{"NCCL_GDR_FLUSH_DISABLE", "1", seeFlush(rdma.MemCUDA), "reads back", "does nothing"},
	{"WEFT_CONGESTION", "system", seeCongestion, "same host", "the system's"},
	{"WEFT_ZEROCOPY", "1", seeZeroCopy, "false", "true"},
	{"WEFT_FLUSH", "always", seeFlush(rdma.MemHost), "does nothing", "reads back"},
	{"WEFT_STRIPE_MIN", "200000", beside("NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=1 WEFT_LAZY=off", seeSplit), "4 of 4 lanes", "1 of 4 lanes"},
	{"WEFT_STRIPING", "even", beside("WEFT_TIMEOUT=4", seeStriping), "the faster", "neither"},
	{"WEFT_LAZY", "off", beside("NCCL_IB_QPS_PER_CONNECTION=4", seeFirstLanes), "1 of 4 lanes", "4 of 4 lanes"},
	{"WEFT_POOL", "0", seePool, "an earlier connection's", "new ones"},
	{"WEFT_TIMEOUT", "3", seeUserTimeout, "10000 ms", "3000 ms"},
	{"WEFT_CONNECT_TIMEOUT", "1", beside("NCCL_SOCKET_RETRY_CNT=0", seeSilence), "until the peer ends it", "not longer"},
	{"WEFT_PORT_RANGE", "20100-20199", seePort, "outside", "in 20100-20199"},
	{"WEFT_REQUIRE", "rdma", seeRequired, "TCP", "an error"},
	{"WEFT_STALL_SECONDS", "1", seeStall, "later", "sooner than after 2 s"},
	{"WEFT_NET_EVENTS", "0", seeNetEvents, "the context's", "none"},
}

func TestKnobsHaveTheirEffect(t *testing.T) {
	for _, e := range effects {
		effect.Check(t, e.name, e.value, e.without, e.with, e.see)
	}
}

var setting = regexp.MustCompile(`(\S+)=(\S+)`)

// beside sees with further settings.
func beside(settings string, see func(*testing.T, map[string]string) string) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		env = maps.Clone(env)
		for _, m := range setting.FindAllStringSubmatch(settings, -1) {
			env[m[1]] = m[2]
		}
		return see(t, env)
	}
}

// loopback plays two processes of this machine, whose device is the real lo.
func loopback(t *testing.T, env map[string]string) (a, b *process) {
	t.Helper()
	h, err := tcp.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	choice := maps.Clone(env)
	choice["NCCL_SOCKET_IFNAME"], choice["NCCL_SOCKET_FAMILY"] = "=lo", "AF_INET"
	devices, err := h.Devices(knob.Parse(choice), report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, env, devices...), start(t, env, devices...)
}

// overLoopback is a comm between them, which ends with the test.
func overLoopback(t *testing.T, env map[string]string) (s, r *Comm) {
	t.Helper()
	a, b := loopback(t, env)
	s, r = pair(t, a, b)
	t.Cleanup(func() { s.Close(); r.Close() })
	return s, r
}

func seeStreams(t *testing.T, env map[string]string) string {
	s, r := overLoopback(t, env)
	n := len(fdsOf(s))
	if len(fdsOf(r)) != n {
		t.Errorf("%d streams and %d", n, len(fdsOf(r)))
	}
	return fmt.Sprintf("%d stream%s", n, report.Plural(n))
}

func seeNetEvents(t *testing.T, env map[string]string) string {
	a := start(t, env)
	if a.NewContext(ContextOptions{Table: aTable, NetEvents: func() uintptr { return 1 }}).opts.NetEvents() == 1 {
		return "the context's"
	}
	return "none"
}

// seeRounds counts how often a listen that is gone is tried.
func seeRounds(t *testing.T, env map[string]string) string {
	a, b := loopback(t, env)
	l, h := b.listen(t, wire.HandleMax)
	l.Close()
	_, err := a.connect(h)
	return regexp.MustCompile(`\d+ rounds|$`).FindString(fmt.Sprint(err))
}

func seeBuffer(option, want int) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		s, r := overLoopback(t, env)
		got := map[bool]int{}
		for _, fd := range append(fdsOf(s), fdsOf(r)...) {
			n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
			if err != nil {
				t.Fatal(err)
			}
			got[n == want]++
		}
		switch {
		case got[true] == 0:
			return "the kernel's"
		case got[false] == 0:
			return "as set"
		}
		return fmt.Sprint(got)
	}
}

// seeTOS reads both ends of a stream, and of the control connection.
func seeTOS(t *testing.T, env map[string]string) string {
	s, r := overLoopback(t, env)
	return fmt.Sprint(tosOf(fdsOf(s)[0]), tosOf(fdsOf(r)[0]), tosOf(s.Member().Session.Conn.FD), tosOf(r.Member().Session.Conn.FD))
}

func tosOf(fd int) int { return tcp.ReadFacts(fd).TOS }

func seeLanes(t *testing.T, env map[string]string) string {
	_, _, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	n := len(s.Carrier().(*lanes.Carrier).PairAt)
	if other := len(r.Carrier().(*lanes.Carrier).PairAt); other != n {
		t.Errorf("%d lanes and %d", n, other)
	}
	return fmt.Sprintf("%d lane%s", n, report.Plural(n))
}

// seeFirstLanes counts the lanes that a comm begins with.
func seeFirstLanes(t *testing.T, env map[string]string) string {
	a, _, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	n := len(s.Carrier().(*lanes.Carrier).PairAt)
	if a.log.Count("INFO", fmt.Sprintf("1 lane and %d later (QPs", n-1)) == 1 {
		return fmt.Sprintf("1 of %d lanes", n)
	}
	return fmt.Sprintf("%d of %d lanes", len(numbersOf(s)), n)
}

// seePool tells which queue pairs a connection has when the one before is closed.
func seePool(t *testing.T, env map[string]string) string {
	a, b, end := keptPair(t, env)
	defer end()
	s, r := pair(t, a, b)
	s.Close()
	r.Close()
	over(t, s, r)
	s, r = pair(t, a, b)
	defer s.Close()
	defer r.Close()
	if reused(t, s, r) {
		return "an earlier connection's"
	}
	return "new ones"
}

// seeSplit counts the lanes that carry one message.
func seeSplit(t *testing.T, env map[string]string) string {
	_, _, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	before, used := fast(s).LaneStates(nil), 0
	move(t, s, r, 150_000)
	for i, l := range fast(s).LaneStates(nil) {
		if l.Posted != before[i].Posted {
			used++
		}
	}
	return fmt.Sprintf("%d of %d lanes", used, len(before))
}

// seeRequests counts the requests of a message: with adaptive routing its end is one of its own.
func seeRequests(from, to string) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		return requests(pair(t, startSim(t, from, env), startSim(t, to, nil)))(t)
	}
}

// seeOrder is that where both sides have the setting.
func seeOrder(t *testing.T, env map[string]string) string {
	return requests(pair(t, startSim(t, "=simX", env), startSim(t, "=simY", env)))(t)
}

func requests(s, r *Comm) func(*testing.T) string {
	return func(t *testing.T) string {
		defer s.Close()
		defer r.Close()
		before := posted(s)
		move(t, s, r, 150_000)
		n := int(posted(s)[0] - before[0])
		return fmt.Sprintf("%d request%s", n, report.Plural(n))
	}
}

func seeFusion(t *testing.T, env map[string]string) string {
	p := start(t, env, loopbacks(1, 2)...)
	_, _ = p.Fuse([]int{0, 1})
	return fmt.Sprint(len(p.Devices()), " devices")
}

func seeRails(t *testing.T, env map[string]string) string {
	a, _, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	for _, l := range a.log.Lines() {
		if _, what, ok := strings.Cut(l, "leaves its rail: "); ok {
			what, _, _ = strings.Cut(what, ";")
			return what
		}
	}
	return ""
}

// seeFlush has a receive into memory of a kind flushed. GPU memory is a memfd
// here, which the simulated device takes for a DMA-BUF.
func seeFlush(kind rdma.MemKind) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		_, _, s, r := simPair(t, env)
		defer s.Close()
		defer r.Close()
		dst := buffer(t, 4096)
		to := hostcalls.Buf{Addr: addrOf(dst), Size: 4096}
		if kind == rdma.MemHost {
			to = register(t, r, dst, 4096)
		} else {
			fd, err := unix.MemfdCreate("weft-test", unix.MFD_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := unix.Ftruncate(fd, 4096); err != nil {
				t.Fatal(err)
			}
			if to.Handle, err = r.RegMrDmaBuf(to.Addr, to.Size, 0, fd, kind); err != nil {
				t.Fatal(err)
			}
		}
		in, out := recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096))
		drive(t, "data", in, out)
		req, code := hostcalls.Iflush(r.Handle(), to)
		if code != 0 || in.code != 0 || out.code != 0 {
			t.Fatalf("codes %d, %d, %d", code, in.code, out.code)
		}
		if req == 0 {
			return "does nothing"
		}
		if code := until(t, "the flush ends", &transfer{req: req}); code != 0 {
			t.Errorf("code %d", code)
		}
		return "reads back"
	}
}

// seeUserTimeout reads how long the kernel lets the control connection be silent.
func seeUserTimeout(t *testing.T, env map[string]string) string {
	s, _ := overLoopback(t, env)
	ms, err := unix.GetsockoptInt(s.Member().Session.Conn.FD, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d ms", ms)
}

// seeSilence connects to something that takes connections and says nothing.
func seeSilence(t *testing.T, env map[string]string) string {
	a, b := loopback(t, env)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() { // what it took it ends later than the connect's own limit would
		for c, err := silent.Accept(); err == nil; c, err = silent.Accept() {
			time.AfterFunc(3*time.Second, func() { c.Close() })
		}
	}()
	_, h := b.listen(t, wire.HandleMax)
	p := parsed(t, h)
	p.Addrs = p.Addrs[:1]
	p.Addrs[0].Port = silent.Addr().(*net.TCPAddr).AddrPort().Port()
	h = append(p.Append(nil), make([]byte, wire.HandleMax)...)[:wire.HandleMax]
	_, err = a.connect(h)
	if err == nil || errors.Is(err, errStill) {
		t.Fatalf("connected to nothing: %v", err)
	}
	if regexp.MustCompile("no answer within 1s").MatchString(err.Error()) {
		return "not longer"
	}
	return "until the peer ends it"
}

func seePort(t *testing.T, env map[string]string) string {
	_, b := loopback(t, env)
	l, h := b.listen(t, wire.HandleMax)
	defer l.Close()
	if p := parsed(t, h).Addrs[0].Port; p >= 20100 && p <= 20199 {
		return "in 20100-20199"
	}
	return "outside"
}

// What NCCL gives with a connection comes before what it gives with the
// communicator, and after the environment; both carriers follow it.
func TestTrafficClass(t *testing.T) {
	for _, c := range []struct {
		env              map[string]string
		context, connect int32
		tos              [2]int // of the sending side's streams, and of the receiving side's
		classes          string
	}{
		{nil, -1, -1, [2]int{0, 0}, "SL 0, TC 0,"},
		{nil, 96, -1, [2]int{96, 96}, "SL 0, TC 96,"},
		{nil, -1, 8, [2]int{8, 0}, "SL 8, TC 8,"}, // the receiving side is not told
		{nil, 96, 8, [2]int{8, 96}, "SL 8, TC 8,"},
		{map[string]string{"NCCL_SOCKET_TOS_CONFIG": "104", "NCCL_IB_TC": "32", "NCCL_IB_SL": "2"}, 96, 8, [2]int{104, 104}, "SL 2, TC 32,"},
	} {
		t.Run(fmt.Sprint(c.env, c.context, c.connect), func(t *testing.T) {
			join := func(a, b *process) (s, r *Comm) {
				a.ctx = a.NewContext(ContextOptions{Table: aTable, TrafficClass: c.context})
				b.ctx = b.NewContext(ContextOptions{Table: aTable, TrafficClass: c.context})
				l, h := b.listen(t, wire.HandleMax)
				defer l.Close()
				eventually(t, "the connect ends", func() bool {
					var err error
					if s, err = a.ctx.Connect(0, c.connect, h); err != nil {
						t.Fatal(err)
					}
					return s != nil
				})
				r, err := accept(l)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close(); r.Close() })
				return s, r
			}
			a, b := start(t, c.env), start(t, c.env)
			s, r := join(a, b)
			if got := [2]int{tosOf(fdsOf(s)[0]), tosOf(fdsOf(r)[0])}; got != c.tos {
				t.Errorf("TOS %v, want %v", got, c.tos)
			}
			a, b = startSim(t, "=simA", c.env), startSim(t, "=simB", c.env)
			join(a, b)
			for _, p := range []*process{a, b} {
				if p.log.Count("INFO NET", c.classes) != 1 {
					t.Errorf("no connection of %s: %q", c.classes, p.log.Lines())
				}
			}
		})
	}
}
