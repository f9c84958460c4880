package transport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/port"
)

// takenBy is how a port takes a part that is lent to a comm over it: the same again shares that registration.
func (e exported) takenBy(t *testing.T, on *port.Device, size int, addr uintptr, offset uint64) string {
	t.Helper()
	before := objects(t).MRs
	pd, err := on.AcquirePD()
	if err != nil {
		t.Fatal(err)
	}
	b, err := memory.NewDMABuf(addr, uint64(size), offset, e.fd, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	region, err := pd.Register(b, ibv.AccessData)
	if err != nil {
		t.Fatal(err)
	}
	if now := objects(t).MRs; now != before {
		t.Errorf("%d registrations, then %d", before, now)
	}
	if err := errors.Join(region.Release(), pd.Release()); err != nil {
		t.Error(err)
	}
	b.Close()
	return region.How
}

// A data-direct device carries comms as any other, registers DMA-BUFs through its
// own path, and asks for flushes, fused too.
func TestSimDataDirectDevice(t *testing.T) {
	a, b := startSim(t, "=simM,simA", map[string]string{"NCCL_IB_DATA_DIRECT": "2"}), startSim(t, "=simG", nil)
	var names []string
	for _, d := range a.Devices() {
		names = append(names, d.Name)
		if d.Flush != strings.HasSuffix(d.Name, "_dma") || d.Flush != strings.HasSuffix(d.PCIPath, simDirect) {
			t.Errorf("%s: flush %v, path %s", d.Name, d.Flush, d.PCIPath)
		}
	}
	if fmt.Sprint(names) != "[simA simM simM_dma]" {
		t.Fatalf("%v: %q", names, a.log.Lines())
	}
	if _, err := a.Fuse([]int{1, 2}); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "simM and simM_dma are one port") {
		t.Errorf("both views of a port fused: %v", err)
	}
	if d := a.fusedWith(t, 0, 2); !d.Flush {
		t.Error("a fused device forgets that a member asks for flushes")
	}
	a.dev = 2
	s, r := pair(t, b, a)
	v, is := r.Carrier().(*lanes.Carrier)
	if !is || v.Routes()[0].Local.Name != "simM_dma" {
		t.Fatalf("%q", a.log.Lines())
	}
	dst := export(t, 1<<16, false)
	to := dst.lend(t, r, 4096, 50_000, addrOf(dst.data)+4096, 4096, rdma.MemCUDA)
	if how := dst.takenBy(t, v.Routes()[0].Local, 50_000, addrOf(dst.data)+4096, 4096); !strings.HasPrefix(how, "data-direct DMA-BUF") {
		t.Errorf("%s: %q", how, a.log.Lines())
	}
	unix.Close(dst.fd)
	src := buffer(t, 50_000)
	copy(src, "by the short way")
	x, y := send(s, register(t, s, src, 50_000)), recv(r, to)
	drive(t, "data", x, y)
	req, code := hostcalls.Iflush(r.Handle(), to)
	if code != 0 || req == 0 || until(t, "the flush ends", &transfer{req: req}) != 0 || !bytes.Equal(dst.data[4096:54_096], src) {
		t.Errorf("request %#x, code %d, or bytes differ", req, code)
	}
	s.Close()
	r.Close()
}
