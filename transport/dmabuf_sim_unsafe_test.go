package transport

// unsafe here: the argument of an ioctl that makes a DMA-BUF.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/rdma"
)

// exported is memory that a descriptor names.
type exported struct {
	fd   int
	data []byte
}

// export makes a memfd, which the simulated devices take for a DMA-BUF, or with
// real a DMA-BUF of /dev/udmabuf, as a driver would make one.
func export(t *testing.T, size int, real bool) exported {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(data) })
	if !real {
		return exported{fd, data}
	}
	defer unix.Close(fd)
	dev, err := unix.Open("/dev/udmabuf", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no DMA-BUF can be made on this machine: /dev/udmabuf: %v", err)
	}
	defer unix.Close(dev)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	create := struct { // struct udmabuf_create
		memfd, flags uint32
		offset, size uint64
	}{uint32(fd), 1 /* close-on-exec */, 0, uint64(size)}
	const makeBuffer = 0x40187542 // UDMABUF_CREATE
	buf, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(dev), makeBuffer, uintptr(unsafe.Pointer(&create)))
	if errno != 0 {
		t.Skipf("no DMA-BUF can be made on this machine: /dev/udmabuf: %v", errno)
	}
	return exported{int(buf), data}
}

// lend registers part of the memory as a host does: by a descriptor that it
// closes at once, and whose number soon means something else.
func (e exported) lend(t *testing.T, c *Comm, at, size int, addr uintptr, offset uint64, kind rdma.MemKind) hostcalls.Buf {
	t.Helper()
	fd, err := unix.Dup(e.fd)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.RegMrDmaBuf(addr, uint64(size), offset, fd, kind)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		t.Cleanup(func() { unix.Close(null) })
	}
	return hostcalls.Buf{Addr: addr, Size: uint64(size), Handle: h}
}

// Data moves between parts of DMA-BUFs, named as hosts and as NCCL's net_ib
// name them, and nothing beside them changes.
func TestSimDMABuf(t *testing.T) {
	page := os.Getpagesize()
	for _, real := range []bool{false, true} {
		for _, kind := range []rdma.MemKind{rdma.MemHost, rdma.MemCUDA} {
			t.Run(fmt.Sprintf("udmabuf %v, %v", real, kind), func(t *testing.T) {
				a, b, s, r := simPair(t, nil)
				src, dst := export(t, 64*page, real), export(t, 64*page, real)
				for i := range src.data {
					src.data[i] = byte(i*7 + i>>8)
				}
				from, to := addrOf(src.data), addrOf(dst.data)
				for _, c := range []struct {
					name             string
					at, size         int
					addr             uintptr // beyond from and to
					offset           uint64
					sendAt, sendSize int // a part of what is registered
				}{
					{"all", 0, 64 * page, 0, 0, 0, 64 * page},
					{"from a page on", 3 * page, 20 * page, uintptr(3 * page), uint64(3 * page), 0, 20 * page},
					{"from within a page", page + 100, 5000, uintptr(page + 100), uint64(page + 100), 0, 5000},
					{"the offset of the page", page + 200, 5000, uintptr(page + 200), uint64(page), 0, 5000},
					{"a part", 4 * page, 30 * page, uintptr(4 * page), uint64(4 * page), 3*page + 17, 12_345},
					{"the last byte", 64*page - 1, 1, uintptr(64*page - 1), uint64(64*page - 1), 0, 1},
				} {
					for i := range dst.data {
						dst.data[i] = 0xee
					}
					out := src.lend(t, s, c.at, c.size, from+c.addr, c.offset, kind)
					in := dst.lend(t, r, c.at, c.size, to+c.addr, c.offset, kind)
					mine, theirs := out.Handle, in.Handle
					out.Addr, out.Size = out.Addr+uintptr(c.sendAt), uint64(c.sendSize)
					in.Addr, in.Size = in.Addr+uintptr(c.sendAt), uint64(c.sendSize)
					x, y := send(s, out), recv(r, in)
					drive(t, c.name, x, y)
					req, code := hostcalls.Iflush(r.Handle(), in)
					if code != 0 || (req != 0) != (kind == rdma.MemCUDA) {
						t.Errorf("%s: flush: request %#x, code %d", c.name, req, code)
					}
					if req != 0 && until(t, "the flush ends", &transfer{req: req}) != 0 {
						t.Errorf("%s: the flush fails", c.name)
					}
					first, last := c.at+c.sendAt, c.at+c.sendAt+c.sendSize
					if x.code != 0 || y.code != 0 || !bytes.Equal(dst.data[first:last], src.data[first:last]) {
						t.Errorf("%s: codes %d and %d, or bytes differ", c.name, x.code, y.code)
					}
					if n := bytes.Count(dst.data[:first], []byte{0xee}) + bytes.Count(dst.data[last:], []byte{0xee}); n != len(dst.data)-c.sendSize {
						t.Errorf("%s: bytes beside it have changed", c.name)
					}
					if err := errors.Join(s.DeregMr(mine), r.DeregMr(theirs)); err != nil {
						t.Error(err)
					}
				}
				unix.Close(src.fd)
				unix.Close(dst.fd)
				if err := errors.Join(s.Close(), r.Close()); err != nil {
					t.Error(err)
				}
				noQPLeft(t, a, b)
			})
		}
	}
}

// A port that carries a device's comms only later gets the memory whose
// descriptor the host has long closed; over TCP what the CPU reaches goes too.
func TestSimDMABufOnLaterPorts(t *testing.T) {
	both := startSim(t, "=simA,simC", nil)
	near, far, none := startSim(t, "=simB", nil), startSim(t, "=simD", nil), startSim(t, "=simE", nil)
	mem := export(t, 1<<16, false)
	for i := range mem.data {
		mem.data[i] = byte(i)
	}
	s, r := pair(t, both, near)
	gpu := mem.lend(t, s, 4096, 40_000, addrOf(mem.data)+4096, 4096, rdma.MemCUDA)
	host := mem.lend(t, s, 4096, 40_000, addrOf(mem.data)+4096, 4096, rdma.MemHost)
	unix.Close(mem.fd)
	for _, p := range []*process{far, none} {
		s2, r2 := pair(t, both, p)
		dst := buffer(t, 40_000)
		to := register(t, r2, dst, 40_000)
		from := gpu
		if p == none {
			from = host
		}
		if overVerbs(s2) != (p == far) {
			t.Fatalf("%q", both.log.Lines())
		}
		out, in := send(s2, from), recv(r2, to)
		drive(t, "a DMA-BUF", out, in)
		if out.code != 0 || in.code != 0 || !bytes.Equal(dst, mem.data[4096:44_096]) {
			t.Errorf("codes %d and %d, or bytes differ", out.code, in.code)
		}
		s2.Close()
		r2.Close()
	}
	s.Close()
	r.Close()
	if d := both.Devices()[0]; d.Ports.Busy() || both.registered(d) != 0 {
		t.Errorf("%d registrations are left", both.registered(d))
	}
	noQPLeft(t, both, near)
	noQPLeft(t, both, far)
}

// A flush reads on every device of a comm: it fails when any of them fails it.
func TestSimFlushReadsOnEveryDevice(t *testing.T) {
	for _, c := range []struct {
		fail string // device of the receiver
		env  map[string]string
		want bool // the flush meets it
	}{
		{"simB", nil, true}, {"simD", nil, true}, {"simA", nil, false},
		{"simB", map[string]string{"NCCL_GDR_FLUSH_DISABLE": "1"}, false}, {"simD", map[string]string{"WEFT_FLUSH": "never"}, false},
	} {
		a, b := startSim(t, "=simA,simC", c.env), startSim(t, "=simB,simD", c.env)
		a.fusedWith(t, 0, 1)
		b.fusedWith(t, 0, 1)
		s, r := pair(t, a, b)
		grown(t, s, r, 2)
		dst := export(t, 1<<16, false)
		to := dst.lend(t, r, 0, 1<<16, addrOf(dst.data), 0, rdma.MemCUDA)
		unix.Close(dst.fd)
		src := buffer(t, 1<<16)
		drive(t, "data", send(s, register(t, s, src, 1<<16)), recv(r, to))
		command(t, "error "+c.fail+" 1 REM_ACCESS_ERR")
		code := int32(0)
		if req, rc := hostcalls.Iflush(r.Handle(), to); rc != 0 {
			t.Errorf("%s: code %d", c.fail, rc)
		} else if req != 0 {
			code = until(t, "the flush ends", &transfer{req: req})
		}
		command(t, "error "+c.fail+" 0 GENERAL_ERR") // forget it if nothing met it
		if (code != 0) != c.want || (b.log.Count("WARN", "a flush read", c.fail) == 1) != c.want {
			t.Errorf("%s, %v: code %d, %q", c.fail, c.env, code, b.log.Lines())
		}
		s.Close()
		r.Close()
		for i, d := range b.Devices() {
			if d.Flush || d.Pointers != rdma.MemHost|rdma.MemDMABUF {
				t.Errorf("device %d: %v, flush %v", i, d.Pointers, d.Flush)
			}
		}
	}
}

// Where only host memory works the device says so, and so does an error.
func TestSimHostMemoryOnly(t *testing.T) {
	a, b := startSim(t, "=simG", nil), startSim(t, "=simM", nil)
	if d := a.Devices()[0]; d.Pointers != rdma.MemHost || a.log.Count("INFO INIT device 0 is simG", "memory host: ", "no DMA-BUFs: ibv_reg_dmabuf_mr returned", "NCCL stages") != 1 {
		t.Errorf("%v, %q", d.Pointers, a.log.Lines())
	}
	if d := startSim(t, "=simA,simG", nil).fusedWith(t, 0, 1); d.Pointers != rdma.MemHost {
		t.Errorf("fused with one that takes more: %v", d.Pointers)
	}
	s, r := pair(t, a, b)
	if !overVerbs(s) {
		t.Fatalf("%q", a.log.Lines())
	}
	mem := export(t, 8192, false)
	defer unix.Close(mem.fd)
	for _, kind := range []rdma.MemKind{rdma.MemHost, rdma.MemCUDA} {
		if _, err := s.RegMrDmaBuf(addrOf(mem.data), 8192, 0, mem.fd, kind); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "takes host memory, not dmabuf: ") ||
			!strings.Contains(err.Error(), "no DMA-BUFs: ibv_reg_dmabuf_mr returned") {
			t.Errorf("%v: %v", kind, err)
		}
	}
	if _, err := s.RegMr(addrOf(mem.data), 8192, rdma.MemCUDA); report.CauseOf(err) != report.Usage {
		t.Errorf("%v", err)
	}
	move(t, s, r, 100_000)
	s.Close()
	r.Close()
}

// A comm goes by a port that takes the memory of the asked device, if one does;
// by another one that memory is refused, naming it.
func TestSimPortsThatTakeLess(t *testing.T) {
	a, b := startSim(t, "=simA,simG,simM", map[string]string{"NCCL_IB_DATA_DIRECT": "0"}), startSim(t, "=simM", nil)
	s, r := pair(t, a, b)
	if got := s.Carrier().(*lanes.Carrier).Pairs[0].Local.Name; got != "simM" {
		t.Errorf("over %s: %q", got, a.log.Lines())
	}
	s.Close()
	r.Close()
	a = startSim(t, "=simA,simG", nil)
	s, r = pair(t, a, b)
	mem := export(t, 8192, false)
	defer unix.Close(mem.fd)
	if _, err := s.RegMrDmaBuf(addrOf(mem.data), 8192, 0, mem.fd, rdma.MemCUDA); report.CauseOf(err) != report.Unsupported ||
		!strings.HasPrefix(err.Error(), "ibv_reg_dmabuf_mr on simG with ") || !strings.Contains(err.Error(), "NCCL_DMABUF_ENABLE=0") {
		t.Error(err)
	}
	move(t, s, r, 10_000)
	s.Close()
	r.Close()
}

// A type that is none is refused, whatever carries the connection.
func TestMemoryOfNoKind(t *testing.T) {
	a, b := startSim(t, "=simA", nil), startSim(t, "=simI", nil)
	mem := export(t, 4096, false)
	defer unix.Close(mem.fd)
	for _, peer := range []*process{startSim(t, "=simB", nil), b} { // by RDMA, by TCP
		s, r := pair(t, a, peer)
		for _, kind := range []rdma.MemKind{0, 8, 9, -1} {
			_, err := s.RegMr(addrOf(mem.data), 4096, kind)
			_, err2 := s.RegMrDmaBuf(addrOf(mem.data), 4096, 0, mem.fd, kind)
			for _, err := range []error{err, err2} {
				if report.CauseOf(err) != report.Misuse || !strings.Contains(err.Error(), fmt.Sprintf("type %d is no kind", kind)) {
					t.Errorf("%v: %v", overVerbs(s), err)
				}
			}
		}
		s.Close()
		r.Close()
	}
}

// The descriptor of a buffer that is refused is not kept.
func TestSimDMABufThatIsRefused(t *testing.T) {
	_, _, s, r := simPair(t, nil)
	mem := export(t, 1<<16, false)
	defer unix.Close(mem.fd)
	copies := func() (n int) {
		file, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", mem.fd))
		if err != nil {
			t.Fatal(err)
		}
		all, _ := filepath.Glob("/proc/self/fd/*")
		for _, fd := range all {
			if other, err := os.Stat(fd); err == nil && os.SameFile(file, other) {
				n++
			}
		}
		return n
	}
	before := copies()
	command(t, "fail reg_dmabuf_mr 1 EINVAL 2")
	if _, err := s.RegMrDmaBuf(addrOf(mem.data), 4096, 0, mem.fd, rdma.MemCUDA); report.CauseOf(err) != report.Usage || !errors.Is(err, syscall.EINVAL) ||
		!strings.Contains(err.Error(), "ibv_reg_dmabuf_mr on simA: 4096 bytes of cuda memory at ") {
		t.Error(err)
	}
	if after := copies(); after != before {
		t.Errorf("%d descriptors of the buffer are open, before there were %d", after, before)
	}
	s.Close()
	r.Close()
}
