package verbs

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/event"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/qp"
)

func TestSimDevices(t *testing.T) {
	p, log, err := openSim(t, nil)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	var got []string
	for _, d := range p.Devices() {
		got = append(got, fmt.Sprintf("%s port %d %s %d Mb/s MTU %d %v GID %s memory %v", d.Name, d.Port, filepath.Base(d.PCIPath), d.SpeedMbps, d.MTU,
			d.InfiniBand, d.GIDs()[0].Addr.Unmap(), d.Pointers))
	}
	want := []string{
		"simA port 1 0000:81:00.0 400000 Mb/s MTU 4096 false GID 10.9.1.1 memory host|dmabuf",
		"simB port 1 0000:82:00.0 100000 Mb/s MTU 1024 false GID 10.9.1.2 memory host|dmabuf",
		"simI port 1 0000:83:00.0 100000 Mb/s MTU 4096 true GID " + p.Devices()[2].GIDs()[0].Addr.String() + " memory host|dmabuf",
		"simI:2 port 3 0000:83:00.0 100000 Mb/s MTU 4096 true GID " + p.Devices()[3].GIDs()[0].Addr.String() + " memory host|dmabuf",
		"simX port 1 . 100000 Mb/s MTU 4096 false GID 10.9.3.1 memory host",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	b := p.Devices()[1]
	if g := b.GIDs(); g[0].Type != ibv.GIDRoCEv2 || len(g) != 3 || g[0].Reaches(p.Devices()[0].GIDs()[0]) != gid.Direct || b.GUID == 0 || b.MaxMessage() == 0 || b.Card().Attr.Firmware == "" {
		t.Errorf("%v, %+v", g, b.Device)
	}
	if is, _ := b.Card().ECE.State(); is == card.No {
		t.Error("ECE is ruled out")
	}
}

// pair connects a queue pair of simA with one of simB, as two processes would.
func pair(t *testing.T, p *Provider, then func(a, b *qp.QP)) (err error) {
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	var qps [2]*qp.QP
	for i := range qps {
		d := p.Devices()[i]
		pd, err := d.AcquirePD()
		if err != nil {
			return err
		}
		defer func() { keep(pd.Release()) }()
		cq, err := qp.NewCQ(pd, 128)
		if err != nil {
			return err
		}
		defer func() { keep(cq.Close()) }()
		if qps[i], err = qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 64, RecvDepth: 64, Inline: 1024, Cookie: uint64(i + 1)}); err != nil {
			return err
		}
		defer func() { keep(qps[i].Close()) }()
	}
	a, b := qps[0], qps[1]
	l, r, reach := gid.Pair(p.Devices()[0].GIDs(), p.Devices()[1].GIDs())
	if reach != gid.Direct {
		t.Errorf("reach %v: %v %v", reach, l, r)
	}
	offer, known, err := a.QueryECE()
	if err != nil {
		return err
	}
	path := qp.Path{GID: r, Peer: a.Local(l)}
	if known {
		path.ECE = &offer
	}
	if err := b.Connect(t.Context(), path); err != nil {
		return err
	}
	reduced, known, err := b.QueryECE()
	if err != nil {
		return err
	}
	path = qp.Path{GID: l, Peer: b.Local(r)}
	if known {
		path.ECE = &reduced
	}
	if err := a.Connect(t.Context(), path); err != nil {
		return err
	}
	if then != nil {
		then(a, b)
	}
	return nil
}

func TestSimConnection(t *testing.T) {
	p, log, err := openSim(t, nil)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	if err := pair(t, p, func(a, b *qp.QP) {
		attr, errno := p.lib.QueryQP(ibv.Object(a.Pointer()))
		if a.State() != ibv.StateRTS || b.State() != ibv.StateRTS || errno != 0 || attr.Port != 1 || a.Inline < 0 || a.Inline > 512 {
			t.Errorf("%v %v %v %+v inline %d", a.State(), b.State(), errno, attr, a.Inline)
		}
		if err := a.Fence(); err != nil || a.State() != ibv.StateErr {
			t.Error(err, a.State())
		}
		if e := (qp.Completion{Status: 12, QPN: b.Number, QP: b}).Explain(); !strings.Contains(e.Error(), "in state RTS, port 1 active") {
			t.Error(e)
		}
	}); err != nil {
		t.Error(err)
	}
	x := p.Devices()[4]
	pd, err := x.AcquirePD()
	if err != nil {
		t.Fatal(err)
	}
	cq, err := qp.NewCQ(pd, 64)
	if err != nil {
		t.Fatal(err)
	}
	q, err := qp.New(x, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 256, RecvDepth: 256, Inline: 220})
	if err != nil {
		t.Fatal(err) // a device with short queues and little inline room serves too
	}
	if q.SendDepth > 32 || q.Inline < 64 || q.Inline > 100 {
		t.Errorf("%+v", q)
	}
	if err := errors.Join(q.Close(), cq.Close(), pd.Release()); err != nil {
		t.Error(err)
	}
}

// A flush reads through a queue pair that is connected to itself, on either link layer.
func TestSimLoopback(t *testing.T) {
	p, log, err := openSim(t, nil)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	for _, d := range p.Devices() {
		pd, err := d.AcquirePD()
		if err != nil {
			t.Fatal(err)
		}
		cq, err := qp.NewCQ(pd, 16)
		if err != nil {
			t.Fatal(err)
		}
		q, err := qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 1, Access: ibv.RemoteRead | ibv.RemoteWrite})
		if err != nil {
			t.Fatal(err)
		}
		gid := d.GIDs()[0]
		if err := q.Connect(t.Context(), qp.Path{GID: gid, Peer: q.Local(gid)}); err != nil || q.State() != ibv.StateRTS {
			t.Error(err)
		}
		if err := errors.Join(q.Close(), cq.Close(), pd.Release()); err != nil {
			t.Error(err)
		}
	}
}

func TestLibrariesThatFail(t *testing.T) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IBVERBS_LIB": "/nonexistent/libibverbs.so"}), Log: log})
	if err == nil {
		p.Close() // this machine has devices
	} else if !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if log.Count("WARN NCCL_IBVERBS_LIB=/nonexistent/libibverbs.so cannot be used: not found") != 1 {
		t.Errorf("%q", log.Lines())
	}
	if p, _, err = openSim(t, nil); err != nil {
		t.Fatal(err)
	}
	p.Close()
	command(t, "fail fork_init 1 EINVAL")
	p, log, err = openSim(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if log.Count("INFO INIT ibv_fork_init: ", "(EINVAL)", "forks") != 1 {
		t.Errorf("%q", log.Lines())
	}
}

func TestSimMemory(t *testing.T) {
	p, log, err := openSim(t, nil)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	pd, err := p.Devices()[0].AcquirePD()
	if err != nil {
		t.Fatal(err)
	}
	fd := fakeibv.Memfd(t, 1<<20)
	data, err := unix.Mmap(fd, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(data)
	addr := reflect.ValueOf(data).Pointer()
	host := hostMemory(t, addr+100, 5000)
	r, err := pd.Register(host, ibv.AccessData)
	if err != nil {
		t.Fatal(err)
	}
	if r.How != "plain, relaxed ordering" || r.RKey == 0 {
		t.Errorf("%+v", r)
	}
	buffer, err := memory.NewDMABuf(addr, 8192, 4096, fd, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	r2, err := pd.Register(buffer, ibv.AccessData)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r2.How, "DMA-BUF") {
		t.Error(r2.How)
	}
	if err := errors.Join(r.Release(), r2.Release(), pd.Release()); err != nil {
		t.Error(err)
	}
	buffer.Close()
}

// What the simulated cable and table do arrives as events, and is kept.
func TestSimEvents(t *testing.T) {
	p, log, err := openSim(t, nil)
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	d := p.Devices()[1]
	came := make(chan event.Event, 64)
	defer p.Subscribe(func(e event.Event) { came <- e })()
	wait := func(kind ibv.EventKind) event.Event {
		for {
			if e := fakeibv.Receive(t, came); e.Kind == kind {
				return e
			}
		}
	}
	command(t, "link simB down")
	if wait(ibv.EventPortErr); d.Down() == "" {
		t.Error("the port does not count as down")
	}
	command(t, "link simB up")
	if wait(ibv.EventPortActive); d.Down() != "" {
		t.Errorf("down: %s", d.Down())
	}
	command(t, "gid simB 1 10.9.1.77/24")
	if wait(ibv.EventGIDChange); d.GIDs()[0].Addr.Unmap().String() != "10.9.1.77" {
		t.Errorf("%v", d.GIDs())
	}
	command(t, "gid simB 1 10.9.1.2/24")
	wait(ibv.EventGIDChange)
	command(t, "event simB DEVICE_FATAL")
	if e := wait(ibv.EventDeviceFatal); e.Err == nil || e.NIC != "simB" {
		t.Errorf("%+v", e)
	}
}

func TestSimPathThatIsNotThere(t *testing.T) {
	p, log, err := openSim(t, map[string]string{"NCCL_IB_MQP_RETRY_CNT": "1", "NCCL_IB_MQP_RETRY_SLEEP_MSEC": "1"})
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	for errno, part := range map[string]string{"ETIMEDOUT": "does not answer from this port", "ENODATA": "no such entry any more"} {
		command(t, "fail modify_qp 3 %s 2", errno) // INIT, INIT, then RTR twice
		err := pair(t, p, nil)
		if err == nil || !strings.Contains(err.Error(), "("+errno+")") || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "from GID ") {
			t.Errorf("%s: %v", errno, err)
		}
		command(t, "fail modify_qp 1000000 EIO") // forget what is left of the plan
	}
}

// Every function of the C library fails once at every place where it is called.
func TestSimEveryCallFailsOnce(t *testing.T) {
	path, err := sim()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := ibv.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	counted, tally := count(lib)
	life := func() error {
		p, err := Open(Config{Log: new(report.Recorder), lib: counted})
		if err != nil {
			return err
		}
		defer p.Close()
		if len(p.Devices()) < 5 {
			return nil // the first ones may be those that failed
		}
		return pair(t, p, nil)
	}
	if err := life(); err != nil {
		t.Fatal(err)
	}
	made := tally.calls()
	for field, name := range map[string]string{
		"OpenDevice": "open_device", "QueryDevice": "query_device", "QueryPort": "query_port", "QueryPortSpeed": "query_port_speed", "AllocPD": "alloc_pd",
		"CreateCQ": "create_cq", "CreateQP": "create_qp", "ModifyQP": "modify_qp", "QueryECE": "query_ece", "SetECE": "set_ece",
		"GetDeviceList": "get_device_list", "RegDMABufMR": "reg_dmabuf_mr",
	} {
		if made[field] == 0 {
			t.Errorf("%s is never called", name)
		}
		for n := range made[field] {
			for _, errno := range []syscall.Errno{syscall.ENOMEM, syscall.EIO} {
				tally.reset()
				command(t, "fail %s %d %d", name, n+1, errno)
				err := life()
				var e *report.Error
				if err != nil && (!errors.As(err, &e) || !errors.Is(err, errno)) {
					t.Errorf("%s, call %d, %v: %v", name, n+1, errno, err)
				}
				if left := tally.left(); left != "" {
					t.Errorf("%s, call %d, %v: left %s", name, n+1, errno, left)
				}
			}
		}
		command(t, "fail %s 1000000 EIO", name)
	}
	if err := life(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
