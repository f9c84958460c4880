package verbs

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/effect"
	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/transport/verbs/event"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// effects are the knobs that this package gives their effect: a setting, and
// what is seen without and with it. A test of internal/knob reads the names.
var effects = []struct {
	name, value   string
	see           func(t *testing.T, env map[string]string) string
	without, with string
}{
	{"NCCL_IB_DISABLE", "1", seeDevices, "simA simB simI simI:2 simX", "NCCL_IB_DISABLE=1"},
	{"NCCL_IB_HCA", "^=simX,simI:1", seeDevices, "simA simB simI simI:2 simX", "simA simB simI"},
	{"NCCL_IBVERBS_LIB", "the one that openSim names", seeLibrary, "another", "the simulated"},
	{"NCCL_IB_GID_INDEX", "=simB=2,simB:1=2", seeGID("simB"), "10.9.1.2 (index 1, RoCE v2)", "10.9.1.2 (index 2, RoCE v1)"},
	{"NCCL_IB_ROUTABLE_FLID_GID_INDEX", "2", seeFLID, "FLID 17", "FLID 18"},
	{"NCCL_IB_ROCE_VERSION_NUM", "1", seeGID("simB"), "10.9.1.2 (index 1, RoCE v2)", "10.9.1.2 (index 2, RoCE v1)"},
	{"NCCL_IB_ADDR_FAMILY", "AF_INET6", seeGID("simA"), "10.9.1.1 (index 1, RoCE v2)", "2001:db8::1 (index 2, RoCE v2)"},
	{"NCCL_IB_ADDR_RANGE", "10.7.0.0/16", seeTwoAddresses, "10.0.0.1", "10.7.0.1"},
	{"NCCL_IB_SUBNET_PREFIX_LEN", "16", seeSubnet, "10.9.1.0/24", "10.9.0.0/16"},
	{"NCCL_IB_TIMEOUT", "14", seeQP(func(a ibv.QPAttr) any { return a.Timeout }), "20", "14"},
	{"NCCL_IB_RETRY_CNT", "3", seeQP(func(a ibv.QPAttr) any { return a.Retry }), "7", "3"},
	{"NCCL_IB_PKEY", "1", seeQP(func(a ibv.QPAttr) any { return a.PKeyIndex }), "0", "1"},
	{"NCCL_IB_PKEY_VALUE", "0x0111", seeQP(func(a ibv.QPAttr) any { return a.PKeyIndex }), "0", "2"}, // 1 is a limited member's
	{"NCCL_IB_SL", "3", seeQP(func(a ibv.QPAttr) any { return a.Path.SL }), "0", "3"},
	{"NCCL_IB_TC", "0x68", seeQP(func(a ibv.QPAttr) any { return a.Path.TrafficClass }), "0", "104"},
	{"NCCL_IB_FIFO_TC", "16", seeReceiver, "7", "16"},
	{"NCCL_IB_USE_INLINE", "0", seeInline, "room", "none"},
	{"NCCL_IB_ECE_ENABLE", "0", seeECE, "vendor 5564", "none"},
	{"NCCL_IB_PCI_RELAXED_ORDERING", "0", seeRegistration, "plain, relaxed ordering", "plain"},
	{"NCCL_IB_DATA_DIRECT", "0", seeDirect, "mlx5_0_dma", "mlx5_0"},
	{"NCCL_IB_MERGE_VFS", "0", seePCI, "0000:82:00.0", "0000:82:03.0"},
	{"NCCL_IB_DEVICE_PCI_ORDER", "0", seeDevices, "simA simB simI simI:2 simX", "simB simA simI simI:2 simX"},
	{"NCCL_IB_QUERY_PORT_SPEED", "0", seeSpeed, "400000 Mb/s", "10000 Mb/s"},
	{"NCCL_IB_RETURN_ASYNC_EVENTS", "0", seeFatal, "ends what it concerns", "is only logged"},
	{"NCCL_IB_MQP_RETRY_ALL", "1", seeModify("fail modify_qp 2 EBUSY"), "failed", "connected"},
	{"NCCL_IB_MQP_RETRY_CNT", "0", seeModify("fail modify_qp 2 ETIMEDOUT"), "connected", "failed"},
	{"NCCL_IB_MQP_RETRY_SLEEP_MSEC", "7", seePause, "follows in 100ms", "follows in 7ms"},
}

func TestKnobsHaveTheirEffect(t *testing.T) {
	for _, e := range effects {
		effect.Check(t, e.name, e.value, e.without, e.with, e.see)
	}
}

// simulated opens the world of this package's tests, which closes with the test.
func simulated(t *testing.T, env map[string]string) *Provider {
	t.Helper()
	p, log, err := openSim(t, env)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	t.Cleanup(p.Close)
	return p
}

func (p *Provider) named(name string) *port.Device {
	for _, d := range p.devices {
		if d.Name == name {
			return d
		}
	}
	return nil
}

func seeDevices(t *testing.T, env map[string]string) string {
	p, _, err := openSim(t, env)
	if err != nil {
		return strings.TrimSuffix(strings.TrimPrefix(err.Error(), "verbs: "), ": "+ErrNone.Error())
	}
	defer p.Close()
	var names []string
	for _, d := range p.Devices() {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

func seeLibrary(t *testing.T, env map[string]string) string {
	lib, err := sim()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(Config{Knobs: knob.Parse(env)})
	if _, set := env["NCCL_IBVERBS_LIB"]; set {
		p, _, err = openSim(t, env)
	}
	if err != nil && !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	if err == nil {
		defer p.Close()
	}
	return map[bool]string{true: "the simulated", false: "another"}[err == nil && p.lib.Name == lib]
}

func seeGID(name string) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		return simulated(t, env).named(name).GIDs()[0].String()
	}
}

// seeFLID looks at an InfiniBand port whose entries 1 and 2 route between subnets.
func seeFLID(t *testing.T, env map[string]string) string {
	card := fakeibv.RoCE("ib", "10.0.0.1", 0)
	port := &card.Ports[0]
	port.LinkLayer = ibv.LinkInfiniBand
	port.GIDs = []ibv.GIDEntry{fakeibv.Entry(0, ibv.GIDInfiniBand, "fec0::1", 0), fakeibv.Entry(1, ibv.GIDInfiniBand, "fec0:0:11::1", 0), fakeibv.Entry(2, ibv.GIDInfiniBand, "fec0:0:12::1", 0)}
	p, log, err := start(fakeibv.New(t, card), fakeibv.Host(t), env)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	return fmt.Sprintf("FLID %d", p.Devices()[0].GIDs()[0].FLID())
}

func seeTwoAddresses(t *testing.T, env map[string]string) string {
	card := fakeibv.RoCE("two", "10.0.0.1", 1)
	card.Ports[0].GIDs = append(card.Ports[0].GIDs, fakeibv.Entry(4, ibv.GIDRoCEv2, "10.7.0.1", 1))
	p, log, err := start(fakeibv.New(t, card), fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24", "10.7.0.1/24")), env)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	return p.Devices()[0].GIDs()[0].Addr.Unmap().String()
}

func seeSubnet(t *testing.T, env map[string]string) string {
	return gid.PrefixOf(simulated(t, env).named("simA").GIDs()[0]).Masked().String()
}

// looped makes a queue pair of simA, connects it with itself as a sender would
// with its peer, and shows it; err is that of making or connecting it.
func looped(t *testing.T, p *Provider, tc int32, show func(q *qp.QP)) (err error) {
	t.Helper()
	d := p.named("simA")
	pd, err := d.AcquirePD()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { err = errors.Join(err, pd.Release()) }()
	cq, err := qp.NewCQ(pd, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { err = errors.Join(err, cq.Close()) }()
	q, err := qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 8, Inline: 64})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	gid := d.GIDs()[0]
	sl, class := p.Class(tc)
	if err := q.Connect(t.Context(), qp.Path{GID: gid, Peer: q.Local(gid), SL: sl, TC: class}); err != nil {
		return err
	}
	if show != nil {
		show(q)
	}
	return nil
}

// asked is what the library says of a queue pair.
func asked(t *testing.T, p *Provider, q *qp.QP) ibv.QPAttr {
	t.Helper()
	a, errno := p.lib.QueryQP(ibv.Object(q.Pointer()))
	if errno != 0 {
		t.Fatal(errno)
	}
	return a
}

// seeQP asks the library what a connected queue pair has.
func seeQP(of func(ibv.QPAttr) any) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) (seen string) {
		p := simulated(t, env)
		err := looped(t, p, -1, func(q *qp.QP) { seen = fmt.Sprint(of(asked(t, p, q))) })
		if errno := unix.Errno(0); errors.As(err, &errno) {
			return "refused " + unix.ErrnoName(errno)
		}
		return seen
	}
}

func seeReceiver(t *testing.T, env map[string]string) string {
	return fmt.Sprint(simulated(t, env).ReceiverTC(7))
}

func seeInline(t *testing.T, env map[string]string) (seen string) {
	if err := looped(t, simulated(t, env), -1, func(q *qp.QP) { seen = map[bool]string{true: "room", false: "none"}[q.Inline > 0] }); err != nil {
		t.Fatal(err)
	}
	return seen
}

func seeECE(t *testing.T, env map[string]string) (seen string) {
	err := looped(t, simulated(t, env), -1, func(q *qp.QP) {
		e, known, err := q.QueryECE()
		if err != nil {
			t.Fatal(err)
		}
		if seen = "none"; known {
			seen = fmt.Sprintf("vendor %d", e.Vendor)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func seeRegistration(t *testing.T, env map[string]string) string {
	pd, err := simulated(t, env).named("simA").AcquirePD()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 5000)
	r, err := pd.Register(hostMemory(t, reflect.ValueOf(data).Pointer(), uint64(len(data))), ibv.AccessData)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Release(), pd.Release()); err != nil {
		t.Error(err)
	}
	return r.How
}

// seePCI looks at a virtual function.
func seePCI(t *testing.T, env map[string]string) string {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	card := fakeibv.At(t, h, fakeibv.RoCE("vf", "10.0.0.1", 1), "0000:82:03.1")
	p, log, err := start(fakeibv.New(t, card), h, env)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	return filepath.Base(p.Devices()[0].PCIPath)
}

func seeSpeed(t *testing.T, env map[string]string) string {
	card := fakeibv.RoCE("a", "10.0.0.1", 1)
	card.Ports[0].Speed = 4000
	p, log, err := start(fakeibv.New(t, card), fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24")), env)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	return fmt.Sprintf("%d Mb/s", p.Devices()[0].SpeedMbps)
}

func seeFatal(t *testing.T, env map[string]string) string {
	came := make(chan event.Event, 64)
	defer simulated(t, env).Subscribe(func(e event.Event) { came <- e })()
	command(t, "event simB DEVICE_FATAL")
	for {
		if e := fakeibv.Receive(t, came); e.Kind == ibv.EventDeviceFatal {
			return map[bool]string{true: "ends what it concerns", false: "is only logged"}[e.Err != nil]
		}
	}
}

// seeModify has a transition fail once.
func seeModify(plan string) func(*testing.T, map[string]string) string {
	return func(t *testing.T, env map[string]string) string {
		p := simulated(t, env)
		command(t, "%s", plan)
		if err := looped(t, p, -1, nil); err != nil {
			return "failed"
		}
		return "connected"
	}
}

func seePause(t *testing.T, env map[string]string) string {
	p, log, err := openSim(t, env)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	command(t, "fail modify_qp 2 ETIMEDOUT")
	if err := looped(t, p, -1, nil); err != nil {
		t.Fatal(err)
	}
	for _, l := range log.Lines() {
		if i := strings.Index(l, "follows in "); i >= 0 {
			return l[i:]
		}
	}
	return fmt.Sprint(log.Lines())
}

// What NCCL gives with a communicator is a traffic class, and a service level
// only if it can be one; the environment comes first.
func TestTrafficClassReachesTheQueuePair(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		class  int32
		sl, tc uint8
	}{
		{nil, -1, 0, 0}, {nil, 3, 3, 3}, {nil, 15, 15, 15}, {nil, 16, 0, 16}, {nil, 104, 0, 104}, {nil, 255, 0, 255}, {nil, 256, 0, 0}, {nil, -7, 0, 0},
		{map[string]string{"NCCL_IB_SL": "5"}, 3, 5, 3}, {map[string]string{"NCCL_IB_SL": "5"}, 106, 5, 106}, {map[string]string{"NCCL_IB_TC": "8"}, 3, 3, 8}, {map[string]string{"NCCL_IB_SL": "0", "NCCL_IB_TC": "0"}, 3, 0, 0},
	} {
		if c.env == nil {
			c.env = map[string]string{}
		}
		p := simulated(t, c.env)
		if err := looped(t, p, c.class, func(q *qp.QP) {
			if a := asked(t, p, q); a.Path.SL != c.sl || a.Path.TrafficClass != c.tc {
				t.Errorf("%v with class %d: SL %d, TC %d, want %d and %d", c.env, c.class, a.Path.SL, a.Path.TrafficClass, c.sl, c.tc)
			}
		}); err != nil {
			t.Errorf("%v with class %d: %v", c.env, c.class, err)
		}
	}
}
