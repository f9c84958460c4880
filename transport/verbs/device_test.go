package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
)

func TestDevicesInOrderOfPCI(t *testing.T) {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"), fakeibv.Eth(2, true, "10.0.1.1/24"))
	two := fakeibv.RoCE("mlx5_1", "10.0.1.1", 2)
	two.Ports = append(two.Ports, two.Ports[0])
	two.Ports[1].LinkLayer = ibv.LinkInfiniBand
	two.Ports[1].GIDs = []ibv.GIDEntry{fakeibv.Entry(0, ibv.GIDInfiniBand, "fe80::2", 0)}
	rxe := fakeibv.RoCE("rxe0", "10.0.0.1", 1)
	rxe.Sysfs = h.Sys("class/infiniband/rxe0")
	fakeibv.Write(t, "veth0\n", rxe.Sysfs, "parent")
	siw := fakeibv.RoCE("siw0", "10.0.0.1", 1)
	siw.Transport = 1
	down := fakeibv.RoCE("down0", "10.0.0.1", 1)
	down.Ports[0].State = 1
	f := fakeibv.New(t, rxe, siw, down,
		fakeibv.At(t, h, fakeibv.RoCE("mlx5_2", "10.0.0.1", 1), "0000:3b:00.1"), fakeibv.At(t, h, two, "0000:3b:00.0"),
		fakeibv.At(t, h, fakeibv.RoCE("mlx5_0", "10.0.0.1", 1), "0000:5e:02.3"))
	p, log, err := start(f, h, nil)
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
		if log.Count("INFO INIT device", fmt.Sprintf("device %d is %s port %d: ", i, d.NIC, d.Number()), map[bool]string{true: "IB", false: "RoCE"}[d.InfiniBand]+", ", "10000 Mb/s", "MTU 4096", pci,
			"1000 QPs", "GID "+d.GIDs()[0].String()+": the ", "memory host|dmabuf: no NVIDIA driver is loaded, DMA-BUFs can be registered") != 1 {
			t.Errorf("no line of device %d: %q", i, log.Lines())
		}
	}
	d := p.Devices()[0]
	if d.GUID != 0xabcd || d.SpeedMbps != 10000 || d.MTU != 4096 || d.MaxComms != 1000 || d.MaxRecvs != 8 || d.IfIndex != 2 || d.Addrs[0].String() != "10.0.1.1/24" || d.Number() != 1 {
		t.Errorf("%+v", d.Device)
	}
	p.Close()
	if left := f.Left(); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestMergingAndOrderKnobs(t *testing.T) {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	f := fakeibv.New(t, fakeibv.At(t, h, fakeibv.RoCE("b", "10.0.0.1", 1), "0000:5e:02.3"), fakeibv.At(t, h, fakeibv.RoCE("a", "10.0.0.1", 1), "0000:3b:00.1"))
	p, _, err := start(f, h, map[string]string{"NCCL_IB_MERGE_VFS": "0", "NCCL_IB_DEVICE_PCI_ORDER": "0"})
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
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	c := fakeibv.RoCE("rxe0", "10.0.0.1", 1)
	c.Sysfs = h.Sys("class/infiniband/rxe0")
	fakeibv.Write(t, "eth1\n", c.Sysfs, "parent")
	function := h.Sys("devices/pci0000:00/0000:00:05.0")
	virtio := filepath.Join(function, "virtio2")
	os.MkdirAll(virtio, 0o777)
	os.MkdirAll(h.Sys("class/net/eth1"), 0o777)
	if err := os.Symlink(virtio, h.Sys("class/net/eth1/device")); err != nil {
		t.Fatal(err)
	}
	p, _, err := start(fakeibv.New(t, c), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.Devices()[0].PCIPath; got != function {
		t.Errorf("%q, want %q", got, function)
	}
}

func TestNoDevicesIsOneSentence(t *testing.T) {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"), fakeibv.Eth(2, false, "10.0.1.1/24"))
	for _, c := range []struct {
		name  string
		cards []fakeibv.Card
		env   map[string]string
		want  string
	}{
		{"excluded", []fakeibv.Card{fakeibv.RoCE("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_HCA": "^a"}, "a:1 (NCCL_IB_HCA leaves it out)"},
		{"none", nil, nil, "a test's library shows no RDMA device"},
		{"disabled", []fakeibv.Card{fakeibv.RoCE("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_DISABLE": "1"}, "NCCL_IB_DISABLE=1"},
		{"left out", []fakeibv.Card{fakeibv.RoCE("a", "10.0.0.1", 1)}, map[string]string{"NCCL_IB_HCA": "=b"}, "a:1 (NCCL_IB_HCA leaves it out)"},
		{"netdev down", []fakeibv.Card{fakeibv.RoCE("a", "10.0.1.1", 2)}, nil, "a:1 (no usable GID)"},
		{"netdev elsewhere", []fakeibv.Card{fakeibv.RoCE("a", "10.0.1.1", 7)}, nil, "a:1 (no usable GID)"},
	} {
		f := fakeibv.New(t, c.cards...)
		_, log, err := start(f, h, c.env)
		if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q; %q", c.name, err, c.want, log.Lines())
		}
		warned := log.Count("WARN NCCL_IB_HCA==b names no RDMA port that can be used here: a:1 (NCCL_IB_HCA leaves it out)")
		if asked := c.name == "left out"; asked != (warned == 1) { // whoever asks for devices wants to hear that there are none
			t.Errorf("%s: %q", c.name, log.Lines())
		}
		if left := f.Left(); left != nil {
			t.Errorf("%s: left %v", c.name, left)
		}
	}
}

// Whatever this machine has, Open returns devices, each of which then makes a
// queue pair and registers memory, or one sentence.
func TestThisMachine(t *testing.T) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IB_MQP_RETRY_CNT": "0"}), Log: log})
	if err != nil {
		t.Log(err)
		if !errors.Is(err, ErrNone) || strings.Contains(err.Error(), "\n") {
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
		r, err := pd.Register(hostMemory(t, reflect.ValueOf(buffer).Pointer(), uint64(len(buffer))), ibv.AccessData)
		if err != nil {
			t.Fatal(err)
		}
		cq, err := qp.NewCQ(pd, 128)
		if err != nil {
			t.Fatal(err)
		}
		q, err := qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 64, RecvDepth: 64, Inline: 1024, Access: ibv.RemoteRead | ibv.RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		_, ece, err := q.QueryECE()
		if err != nil {
			t.Error(err)
		}
		gid := d.GIDs()[0]
		err = q.Connect(t.Context(), qp.Path{GID: gid, Peer: q.Local(gid)})
		t.Logf("%s: registered %s, inline %d, ECE %v, to itself: %v, state %v", d.Name, r.How, q.Inline, ece, err, q.State())
		if err := errors.Join(q.Fence(), q.Close(), cq.Close(), r.Release(), pd.Release()); err != nil {
			t.Error(err)
		}
	}
	for _, l := range log.Lines() {
		t.Log(l)
	}
}
