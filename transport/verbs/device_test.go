package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// cardAt gives the card a sysfs folder whose device link leads to a PCI function.
func cardAt(t *testing.T, h *machine.Machine, c fakeCard, function string) fakeCard {
	t.Helper()
	c.sysfs = filepath.Join(h.Sysfs, "class", "infiniband", c.name)
	real := filepath.Join(h.Sysfs, "devices", "pci0000:00", function)
	for _, dir := range []string{c.sysfs, real} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, filepath.Join(c.sysfs, "device")); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDevicesInOrderOfPCI(t *testing.T) {
	h := fakeHost(t, eth(1, true, "10.0.0.1/24"), eth(2, true, "10.0.1.1/24"))
	two := roce("mlx5_1", "10.0.1.1", 2)
	two.ports = append(two.ports, two.ports[0])
	two.ports[1].LinkLayer = ibv.LinkInfiniBand
	two.ports[1].gids = []ibv.GIDEntry{entry(0, ibv.GIDInfiniBand, "fe80::2", 0)}
	rxe := roce("rxe0", "10.0.0.1", 1)
	rxe.sysfs = filepath.Join(h.Sysfs, "class", "infiniband", "rxe0")
	write(t, "veth0\n", rxe.sysfs, "parent")
	siw := roce("siw0", "10.0.0.1", 1)
	siw.transport = 1
	down := roce("down0", "10.0.0.1", 1)
	down.ports[0].State = 1
	f := newFake(t, rxe, siw, down,
		cardAt(t, h, roce("mlx5_2", "10.0.0.1", 1), "0000:3b:00.1"), cardAt(t, h, two, "0000:3b:00.0"),
		cardAt(t, h, roce("mlx5_0", "10.0.0.1", 1), "0000:5e:02.3"))
	p, log, err := f.start(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range p.Devices() {
		got = append(got, strings.Join([]string{d.Name, filepath.Base(d.PCIPath), string(rune('0' + d.Port)), d.Pointers.String()}, " "))
	}
	want := []string{ // an unknown card is no reason to fail; what has no PCI path comes last
		"mlx5_1 0000:3b:00.0 1 host|dmabuf", "mlx5_1:2 0000:3b:00.0 3 host|dmabuf", "mlx5_2 0000:3b:00.0 3 host|dmabuf",
		"mlx5_0 0000:5e:00.0 1 host|dmabuf", "rxe0 . 1 host|dmabuf",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if log.Count("INFO INIT RDMA through", "[1]mlx5_1:2/IB", "[4]rxe0:1/RoCE", "not siw0 (neither", "down0:1 (not active)") != 1 {
		t.Errorf("%q", log.Lines())
	}
	for i, d := range p.Devices() { // all that there is to know of a device, in one line
		pci := map[bool]string{true: "PCI 0000:", false: "without PCI address"}[d.PCIPath != ""]
		if log.Count("INFO INIT device", fmt.Sprintf("device %d is %s port %d: ", i, d.NIC, d.portNum), d.link()+", ", "10000 Mb/s", "MTU 4096", pci,
			"1000 queue pairs", "GID "+d.GIDs()[0].String()+": the ", "memory host|dmabuf: no NVIDIA driver is loaded, DMA-BUFs can be registered") != 1 {
			t.Errorf("no line of device %d: %q", i, log.Lines())
		}
	}
	d := p.Devices()[0]
	if d.GUID != 0xabcd || d.SpeedMbps != 10000 || d.MTU != 4096 || d.MaxComms != 1000 || d.MaxRecvs != 8 || d.IfIndex != 2 || d.Addrs[0].String() != "10.0.1.1/24" || d.portNum != 1 {
		t.Errorf("%+v", d.Device)
	}
	p.Close()
	if left := f.left(); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestMergingAndOrderKnobs(t *testing.T) {
	h := fakeHost(t, eth(1, true, "10.0.0.1/24"))
	f := newFake(t, cardAt(t, h, roce("b", "10.0.0.1", 1), "0000:5e:02.3"), cardAt(t, h, roce("a", "10.0.0.1", 1), "0000:3b:00.1"))
	p, _, err := f.start(t, h, map[string]string{"NCCL_IB_MERGE_VFS": "0", "NCCL_IB_DEVICE_PCI_ORDER": "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if a, b := p.Devices()[0], p.Devices()[1]; filepath.Base(a.PCIPath) != "0000:5e:02.0" || b.Name != "a" {
		t.Errorf("%v %v", a.PCIPath, b.Name)
	}
}

// Soft-RoCE on a NIC sits where the NIC sits.
func TestParentGivesThePCIPath(t *testing.T) {
	h := fakeHost(t, eth(1, true, "10.0.0.1/24"))
	c := roce("rxe0", "10.0.0.1", 1)
	c.sysfs = filepath.Join(h.Sysfs, "class", "infiniband", "rxe0")
	write(t, "eth1\n", c.sysfs, "parent")
	function := filepath.Join(h.Sysfs, "devices", "pci0000:00", "0000:00:05.0")
	virtio := filepath.Join(function, "virtio2")
	os.MkdirAll(virtio, 0o777)
	os.MkdirAll(filepath.Join(h.Sysfs, "class", "net", "eth1"), 0o777)
	if err := os.Symlink(virtio, filepath.Join(h.Sysfs, "class", "net", "eth1", "device")); err != nil {
		t.Fatal(err)
	}
	p, _, err := newFake(t, c).start(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Devices()[0].PCIPath; got != function {
		t.Errorf("%q, want %q", got, function)
	}
}

func TestNoDevicesIsOneSentence(t *testing.T) {
	h := fakeHost(t, eth(1, true, "10.0.0.1/24"), eth(2, false, "10.0.1.1/24"))
	for _, c := range []struct {
		name  string
		cards []fakeCard
		env   map[string]string
		want  string
	}{
		{"excluded", []fakeCard{roce("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_HCA": "^a"}, "a:1 (NCCL_IB_HCA leaves it out)"},
		{"none", nil, nil, "a test's library shows no RDMA device"},
		{"disabled", []fakeCard{roce("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_DISABLE": "1"}, "NCCL_IB_DISABLE=1"},
		{"left out", []fakeCard{roce("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_HCA": "=b"}, "a:1 (NCCL_IB_HCA leaves it out)"},
		{"netdev down", []fakeCard{roce("a", "10.0.1.1", 2)}, nil, "a:1 (no usable GID)"},
		{"netdev elsewhere", []fakeCard{roce("a", "10.0.1.1", 7)}, nil, "a:1 (no usable GID)"},
	} {
		f := newFake(t, c.cards...)
		_, log, err := f.start(t, h, c.env)
		if !IsNone(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q; %q", c.name, err, c.want, log.Lines())
		}
		warned := log.Count("WARN NCCL_IB_HCA==b names no RDMA port that can be used here: a:1 (NCCL_IB_HCA leaves it out)")
		if asked := c.name == "left out"; asked != (warned == 1) { // whoever asks for devices wants to hear that there are none
			t.Errorf("%s: %q", c.name, log.Lines())
		}
		if left := f.left(); left != nil {
			t.Errorf("%s: left %v", c.name, left)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "")
	lib, err := ibv.Load("libweft-that-is-not-there.so")
	if lib != nil || err != ibv.ErrMissing {
		t.Errorf("%v, %v", lib, err)
	}
	text := filepath.Join(t.TempDir(), "libibverbs.so")
	write(t, "no library", text)
	if _, err := ibv.Load(text); err == nil || err == ibv.ErrMissing {
		t.Errorf("a text file: %v", err)
	}
	if _, err := ibv.Load("libc.so.6"); err == nil || !strings.Contains(err.Error(), "ibv_get_device_list") {
		t.Errorf("libc: %v", err)
	}
}

func TestSpeeds(t *testing.T) {
	for _, c := range []struct {
		width, speed uint8
		ex           uint32
		want         int
	}{
		{2, 64, 0, 200000}, {2, 32, 0, 100000}, {1, 4, 0, 10000}, {2, 128, 0, 400000}, {2, 128, 256, 800000},
		{16, 64, 0, 100000}, {0, 0, 0, 400000}, {4, 8, 0, 80000},
		{1, 1, 0, 2500}, {1, 2, 0, 5000}, {1, 8, 0, 10000}, {1, 16, 0, 14000}, {1, 32, 0, 25000}, {1, 64, 0, 50000}, {1, 128, 0, 100000}, {1, 0, 256, 200000},
	} {
		if got := tableSpeed(&ibv.PortAttr{ActiveWidth: c.width, ActiveSpeed: c.speed, ActiveSpeedEx: c.ex}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	h := fakeHost(t, eth(1, true, "10.0.0.1/24"))
	card := roce("a", "10.0.0.1", 1)
	card.ports[0].speed = 4000
	for _, c := range []struct {
		env   map[string]string
		lacks []string
		want  int
	}{
		{nil, nil, 400000}, {map[string]string{"NCCL_IB_QUERY_PORT_SPEED": "0"}, nil, 10000}, {nil, []string{"ibv_query_port_speed"}, 10000},
	} {
		f := newFake(t, card)
		f.lacks = c.lacks
		p, _, err := f.start(t, h, c.env)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Devices()[0].SpeedMbps; got != c.want {
			t.Errorf("%v: %d", c, got)
		}
		p.Close()
	}
}

// Libraries before 1.11 tell GIDs one by one, and sysfs the rest.
func TestGIDsOfAnOldLibrary(t *testing.T) {
	h := fakeHost(t, eth(1, true, "10.0.0.1/22"), eth(2, false, "10.0.9.1/24"))
	card := roce("a", "10.0.0.1", 1)
	card.sysfs = filepath.Join(h.Sysfs, "class", "infiniband", "a")
	card.ports[0].gids = append(card.ports[0].gids, entry(4, ibv.GIDRoCEv2, "10.0.9.1", 2), entry(5, ibv.GIDRoCEv2, "10.0.7.1", 1))
	attrs := filepath.Join(card.sysfs, "ports", "1", "gid_attrs")
	for i, kind := range []string{"IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2", "RoCE v2"} { // 5 cannot be read
		write(t, kind+"\n", attrs, "types", string(rune('0'+i)))
		write(t, map[bool]string{true: "eth2\n", false: "eth1\n"}[i == 4], attrs, "ndevs", string(rune('0'+i)))
	}
	f := newFake(t, card)
	f.lacks = []string{"ibv_query_gid_table"}
	p, _, err := f.start(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var got []string
	for _, g := range p.Devices()[0].GIDs() {
		got = append(got, g.String()+" "+g.Subnet().String())
	}
	want := []string{
		"10.0.0.1 (index 3, RoCE v2, eth1) 10.0.0.0/22", "10.0.0.1 (index 2, RoCE v1, eth1) 10.0.0.0/22",
		"fe80::1 (index 1, RoCE v2, eth1) fe80::/64", "fe80::1 (index 0, RoCE v1, eth1) fe80::/64",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A probe that fails for a reason of its own is no answer, and is not kept.
func TestDMABUFProbeThatTellsNothing(t *testing.T) {
	f := newFake(t, roce("a", "10.0.0.1", 1))
	table := f.table()
	probes := 0
	table.RegDMABufMR = func(ibv.Object, uint64, uint64, uintptr, int, ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		probes++
		return ibv.MemoryKeys{}, syscall.ENOMEM
	}
	p, err := Open(Config{Host: fakeHost(t, eth(1, true, "10.0.0.1/24")), lib: table})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if is, _ := p.Devices()[0].adapter.dmabuf.State(); is != Unknown || p.Devices()[0].Pointers != rdma.MemHost || probes != 1 {
		t.Errorf("%v after %d probes", is, probes)
	}
}

// Whatever this machine has, Open answers devices, each of which then makes a
// queue pair and registers memory, or one sentence.
func TestThisMachine(t *testing.T) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IB_MQP_RETRY_CNT": "0"}), Log: log})
	if err != nil {
		t.Log(err)
		if !IsNone(err) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; %q", err, log.Lines())
		}
		return
	}
	defer p.Close()
	buffer := make([]byte, 10000)
	for _, d := range p.Devices() {
		t.Logf("%s: %+v, GIDs %v", d.Name, d.Device, d.GIDs())
		pd, err := d.AcquirePD()
		if err != nil {
			t.Fatal(err)
		}
		r, err := pd.Register(memory(t, reflect.ValueOf(buffer).Pointer(), uint64(len(buffer))), ibv.AccessData)
		if err != nil {
			t.Fatal(err)
		}
		cq, err := pd.NewCQ(128)
		if err != nil {
			t.Fatal(err)
		}
		q, err := d.NewQP(pd, QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 64, RecvDepth: 64, Inline: 1024, Access: ibv.RemoteRead | ibv.RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		_, ece, err := q.QueryECE()
		if err != nil {
			t.Error(err)
		}
		gid := d.GIDs()[0]
		err = q.Connect(t.Context(), Path{GID: gid, Peer: q.Local(gid)})
		t.Logf("%s: registered %s, inline %d, ECE %v, to itself: %v, state %v", d.Name, r.How, q.Inline, ece, err, q.State())
		if err := errors.Join(q.Fence(), q.Close(), cq.Close(), r.Release(), pd.Release()); err != nil {
			t.Error(err)
		}
	}
	for _, l := range log.Lines() {
		t.Log(l)
	}
}
