package qp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
)

// bench is a device with a protection domain and a completion queue.
type bench struct {
	t   *testing.T
	f   *fakeibv.Lib
	c   *card.Card
	log *report.Recorder
	d   *port.Device
	pd  *mr.PD
	cq  *CQ
}

// gidAt is an entry of a GID table whose subnet is as long as it usually is.
func gidAt(index int, kind ibv.GIDType, addr string) gid.GID {
	a, bits := netip.MustParseAddr(addr), 64
	if a.Is4() {
		bits = 24
	}
	return gid.GID{Addr: netip.AddrFrom16(a.As16()), Index: index, Type: kind, Bits: bits}
}

// newBench takes the card's first port that is used.
func newBench(t *testing.T, f *fakeibv.Lib, env map[string]string) *bench {
	t.Helper()
	host := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	b := &bench{t: t, f: f}
	b.c, b.log = f.Open(host, env)
	rules, _ := gid.RulesOf(b.c.Lib.Knobs)
	links, err := host.Links()
	if err != nil {
		t.Fatal(err)
	}
	for number := uint8(1); number <= b.c.Attr.Ports && b.d == nil; number++ {
		b.d, _ = port.Find(&port.Choice{Rules: &rules, Links: links}, b.c, mr.DomainsOf(b.c), number)
	}
	if b.pd, err = b.d.AcquirePD(); err != nil {
		t.Fatal(err)
	}
	if b.cq, err = NewCQ(b.pd, 512); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) qp(c Config) (*QP, error) {
	c.SendCQ, c.RecvCQ = b.cq, b.cq
	if c.SendDepth == 0 {
		c.SendDepth, c.RecvDepth = 256, 256
	}
	return New(b.d, b.pd, c)
}

func (b *bench) end() {
	b.t.Helper()
	if err := errors.Join(b.cq.Close(), b.pd.Release()); err != nil {
		b.t.Error(err)
	}
	b.c.Close()
	if left := b.f.Left(); left != nil {
		b.t.Errorf("left: %v", left)
	}
}

// far is a peer's end in the bench's subnet.
func far(t *testing.T) End {
	return End{QPN: 77, PSN: 0x123456, MTU: 3, GID: gidAt(9, ibv.GIDRoCEv2, "10.0.0.9")}
}

func TestQueuePairComesToRTS(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	var steps []ibv.QPAttr
	f.OnModify = func(_ ibv.Object, attr *ibv.QPAttr) syscall.Errno { steps = append(steps, *attr); return 0 }
	b := newBench(t, f, map[string]string{"NCCL_IB_PKEY": "3", "NCCL_IB_TIMEOUT": "14", "NCCL_IB_RETRY_CNT": "6"})
	q, err := b.qp(Config{Inline: 220})
	if err != nil {
		t.Fatal(err)
	}
	gid := b.d.GIDs()[0]
	mine := q.Local(gid)
	if err := q.Connect(t.Context(), Path{GID: gid, Peer: far(t), SL: 5, TC: 106}); err != nil {
		t.Fatal(err)
	}
	init, rtr, rts := steps[0], steps[1], steps[2]
	if init.State != ibv.StateInit || init.PKeyIndex != 3 || init.Port != 1 || init.Access != ibv.RemoteWrite {
		t.Errorf("INIT %+v", init)
	}
	want := ibv.AddressHandle{Global: true, DGID: far(t).GID.Addr, SGIDIndex: 3, HopLimit: 255, TrafficClass: 106, SL: 5, Port: 1}
	if rtr.State != ibv.StateRTR || rtr.Path != want || rtr.MTU != 3 || rtr.DestQP != 77 || rtr.RQPSN != 0x123456 {
		t.Errorf("RTR %+v", rtr)
	}
	if rts.State != ibv.StateRTS || rts.SQPSN != mine.PSN || rts.Timeout != 14 || rts.Retry != 6 || rts.RNRRetry != 7 {
		t.Errorf("RTS %+v", rts)
	}
	if mine.QPN != q.Number || mine.MTU != 5 || mine.GID != gid || q.Inline != 220 || q.State() != ibv.StateRTS || q.Pointer() == 0 || b.cq.Pointer() == 0 || q.dev != b.d {
		t.Errorf("%+v %+v", mine, q)
	}
	if err := q.Fence(); err != nil || q.State() != ibv.StateErr {
		t.Error(err, q.State())
	}
	if err := errors.Join(q.Close(), q.Close()); err != nil {
		t.Error(err)
	}
	b.end()
}

func TestInfiniBandPaths(t *testing.T) {
	card := fakeibv.Card{Name: "ib0", Ports: []fakeibv.Port{{}, {
		PortAttr: ibv.PortAttr{State: ibv.PortActive, LinkLayer: ibv.LinkInfiniBand, ActiveMTU: 5, GIDTableLen: 8, LID: 4},
		GIDs:     []ibv.GIDEntry{fakeibv.Entry(0, ibv.GIDInfiniBand, "fe80::1", 0)},
	}}}
	for _, c := range []struct {
		remote string
		flags  uint8
		want   ibv.AddressHandle
	}{
		{"fe80::2", 0, ibv.AddressHandle{DLID: 9, Port: 2}},
		{"fe80::2", ibv.GRHRequired, ibv.AddressHandle{DLID: 9, Port: 2, Global: true, HopLimit: 255}},
		{"fe80:0:7:1::2", 0, ibv.AddressHandle{DLID: 7, Port: 2, Global: true, HopLimit: 255}},
	} {
		card.Ports[1].Flags = c.flags
		f := fakeibv.New(t, card)
		var got ibv.AddressHandle
		f.OnModify = func(_ ibv.Object, attr *ibv.QPAttr) syscall.Errno {
			if attr.State == ibv.StateRTR {
				got = attr.Path
			}
			return 0
		}
		b := newBench(t, f, nil)
		q, err := b.qp(Config{})
		if err != nil {
			t.Fatal(err)
		}
		peer := End{QPN: 1, LID: 9, MTU: 5, GID: gidAt(0, ibv.GIDInfiniBand, c.remote)}
		if err := q.Connect(t.Context(), Path{GID: b.d.GIDs()[0], Peer: peer, TC: 32}); err != nil {
			t.Fatal(err)
		}
		if c.want.Global {
			c.want.DGID = peer.GID.Addr
		}
		if got != c.want || q.Local(b.d.GIDs()[0]).LID != 4 {
			t.Errorf("%s: %+v, want %+v", c.remote, got, c.want)
		}
		q.Close()
		b.end()
	}
}

func TestHostileEndIsRefused(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	q, err := b.qp(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*End)
		want   string
	}{
		{func(e *End) { e.MTU = 0 }, "MTU code is 0"},
		{func(e *End) { e.MTU = 200 }, "MTU code is 200"},
		{func(e *End) { e.QPN = 1 << 24 }, "more than 24 bits"},
		{func(e *End) { e.QPN = 0 }, "QP 0x0"},
		{func(e *End) { e.PSN = 1 << 24 }, "more than 24 bits"},
		{func(e *End) { e.GID = gid.GID{} }, "no address"},
		{func(e *End) { e.GID = gidAt(0, ibv.GIDInfiniBand, "fe80::1") }, "InfiniBand"},
		{func(e *End) { e.GID = gidAt(0, ibv.GIDRoCEv2, "fe80::1") }, "cannot reach"},
		{func(e *End) { e.GID = gidAt(0, ibv.GIDRoCEv1, "10.0.0.1") }, "cannot reach"},
	} {
		peer := far(t)
		c.change(&peer)
		err := q.Connect(t.Context(), Path{GID: b.d.GIDs()[0], Peer: peer})
		if report.CauseOf(err) != report.Peer || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v, want %q", peer, err, c.want)
		}
	}
	q.Close()
	b.end()
}

func TestModifyIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		errno syscall.Errno
		fails int // times that RTR fails
		tries int
		cause report.Cause
		part  string
	}{
		{nil, syscall.ETIMEDOUT, 2, 3, 0, ""},
		{nil, syscall.EINVAL, 1, 1, report.Host, "NCCL_IB_GID_INDEX"},
		{nil, syscall.ENODATA, 1, 1, report.Host, "no such entry any more"},
		{map[string]string{"NCCL_IB_MQP_RETRY_ALL": "1"}, syscall.EINVAL, 2, 3, 0, ""},
		{map[string]string{"NCCL_IB_MQP_RETRY_CNT": "1"}, syscall.ETIMEDOUT, 9, 2, report.Network, "does not answer from this port"},
		{map[string]string{"NCCL_IB_MQP_RETRY_CNT": "0"}, syscall.ENETUNREACH, 9, 1, report.Network, "no route"},
	} {
		f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
		tries := 0
		f.OnModify = func(_ ibv.Object, attr *ibv.QPAttr) syscall.Errno {
			if attr.State != ibv.StateRTR {
				return 0
			}
			if tries++; tries <= c.fails {
				return c.errno
			}
			return 0
		}
		env := map[string]string{"NCCL_IB_MQP_RETRY_SLEEP_MSEC": "0"}
		for k, v := range c.env {
			env[k] = v
		}
		b := newBench(t, f, env)
		q, err := b.qp(Config{})
		if err != nil {
			t.Fatal(err)
		}
		err = q.Connect(t.Context(), Path{GID: b.d.GIDs()[0], Peer: far(t)})
		if (err != nil) != (c.part != "") || tries != c.tries {
			t.Errorf("%v: %v after %d tries", c.errno, err, tries)
		}
		if err != nil && (report.CauseOf(err) != c.cause || !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.part) ||
			!strings.HasPrefix(err.Error(), "ibv_modify_qp on a with 10.0.0.9 QP 77: QP ")) {
			t.Errorf("%v: %v", c.errno, err)
		}
		q.Close()
		b.end()
	}
}

func TestRetryEndsWithItsOwner(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	ctx, cancel := context.WithCancel(t.Context())
	f.OnModify = func(_ ibv.Object, attr *ibv.QPAttr) syscall.Errno {
		if attr.State == ibv.StateRTR {
			cancel()
			return syscall.ETIMEDOUT
		}
		return 0
	}
	b := newBench(t, f, map[string]string{"NCCL_IB_MQP_RETRY_SLEEP_MSEC": "600000"})
	q, err := b.qp(Config{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- q.Connect(ctx, Path{GID: b.d.GIDs()[0], Peer: far(t)}) }()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ETIMEDOUT) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Connect outlives its owner")
	}
	q.Close()
	b.end()
}

func TestQueuesFitTheDevice(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	var asked []int
	f.OnCreate = func(want ibv.QPCap) (ibv.QPCap, syscall.Errno) {
		asked = append(asked, want.Inline)
		if want.Inline > 64 {
			return want, syscall.EINVAL
		}
		want.Inline += 12
		return want, 0
	}
	b := newBench(t, f, nil)
	q, err := b.qp(Config{SendDepth: 1 << 20, RecvDepth: 300, Inline: 1024})
	if err != nil {
		t.Fatal(err)
	}
	if q.SendDepth != fakeibv.MaxWR || q.RecvDepth != 300 || q.Inline != 76 || !slices.Equal(asked, []int{1024, 512, 256, 128, 64}) {
		t.Errorf("%+v, asked %v", q, asked)
	}
	q.Close()
	f.OnCreate = func(want ibv.QPCap) (ibv.QPCap, syscall.Errno) { return want, syscall.ENOMEM }
	if _, err := b.qp(Config{}); report.CauseOf(err) != report.Host || !strings.Contains(fmt.Sprint(err), "(ENOMEM)") || !strings.Contains(fmt.Sprint(err), "ulimit -l") {
		t.Error(err)
	}
	if _, err := NewCQ(b.pd, 1<<20); !strings.Contains(fmt.Sprint(err), "1048576 completions: the device allows 1 to 65536") {
		t.Error(err)
	}
	b.end()
}

func TestECEIsAgreedWhereKnown(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		lacks []string
		want  bool
	}{
		{nil, nil, true}, {map[string]string{"NCCL_IB_ECE_ENABLE": "0"}, nil, false}, {nil, []string{"ibv_query_ece", "ibv_set_ece"}, false},
	} {
		f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
		f.Lacking = c.lacks
		b := newBench(t, f, c.env)
		q, err := b.qp(Config{})
		if err != nil {
			t.Fatal(err)
		}
		e, ok, err := q.QueryECE()
		if ok != c.want || err != nil || ok && e.Vendor != 0x15b3 {
			t.Errorf("%v: %+v %v %v", c, e, ok, err)
		}
		if err := q.Connect(t.Context(), Path{GID: b.d.GIDs()[0], Peer: far(t), ECE: &e}); err != nil {
			t.Error(err)
		}
		q.Close()
		b.end()
	}
}

// Soft-RoCE has the functions and returns "not supported".
func TestECEUnsupportedIsLearnt(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	asked := 0
	b.c.Lib.QueryECE = func(ibv.Object) (ibv.ECE, syscall.Errno) { asked++; return ibv.ECE{}, syscall.EOPNOTSUPP }
	for range 2 {
		q, err := b.qp(Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := q.QueryECE(); ok || err != nil {
			t.Error(ok, err)
		}
		q.Close()
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	b.end()
}
