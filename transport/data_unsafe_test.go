package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// buffer is memory outside Go's heap, as a host's is.
func buffer(t testing.TB, size int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// register makes b usable on c.
func register(t testing.TB, c *Comm, b []byte, size int) hostcalls.Buf {
	t.Helper()
	h, err := c.RegMr(addrOf(b), uint64(len(b)), rdma.MemHost)
	if err != nil {
		t.Fatal(err)
	}
	return hostcalls.Buf{Addr: addrOf(b), Size: uint64(size), Handle: h}
}

// transfer is one message under way, pumped by drive.
type transfer struct {
	post func() (uintptr, int32)
	req  uintptr
	done bool
	got  [8]int32
	code int32
}

// step moves the transfer on.
func (x *transfer) step() {
	if x.done {
		return
	}
	if x.req == 0 {
		if x.req, x.code = x.post(); x.code != 0 {
			x.done = true
		}
		return
	}
	done, got, code := hostcalls.Test(x.req)
	if done || code != 0 {
		x.done, x.got, x.code = true, got, code
	}
}

// drive pumps all transfers on one thread until each is done.
func drive(t testing.TB, what string, all ...*transfer) {
	t.Helper()
	eventually(t, what, func() bool {
		for range 1000 {
			left := 0
			for _, x := range all {
				if x.step(); !x.done {
					left++
				}
			}
			if left == 0 {
				return true
			}
		}
		return false
	})
}

func send(c *Comm, b hostcalls.Buf) *transfer {
	return &transfer{post: func() (uintptr, int32) { return hostcalls.Isend(c.Handle(), b) }}
}

func recv(c *Comm, b ...hostcalls.Buf) *transfer {
	return &transfer{post: func() (uintptr, int32) { return hostcalls.Irecv(c.Handle(), b...) }}
}

// move sends size random bytes from s to r and compares them.
func move(t testing.TB, s, r *Comm, size int) {
	t.Helper()
	src, dst := buffer(t, size+1), buffer(t, size+100)
	for i := range src[:size] {
		src[i] = byte(rand.Uint32())
	}
	sb, rb := register(t, s, src, size), register(t, r, dst, size+100)
	out, in := send(s, sb), recv(r, rb)
	drive(t, fmt.Sprintf("%d bytes", size), out, in)
	if out.code != 0 || in.code != 0 || in.got[0] != int32(size) || !bytes.Equal(src[:size], dst[:size]) {
		t.Fatalf("%d bytes: codes %d and %d, received %d, equal %v", size, out.code, in.code, in.got[0], bytes.Equal(src[:size], dst[:size]))
	}
	for _, err := range []error{s.DeregMr(sb.Handle), r.DeregMr(rb.Handle)} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestDataArrives(t *testing.T) {
	for _, streams := range []int{1, 4} {
		t.Run(fmt.Sprint(streams, " streams"), func(t *testing.T) {
			a, b := start(t, nil, lo(1)), start(t, nil, lo(streams))
			s, r := pair(t, a, b)
			for _, size := range []int{0, 1, 8, 1023, 1024, 1025, 128<<10 + 3, 256 << 10, 256<<10 + 3, 4 << 20} {
				move(t, s, r, size)
			}
		})
	}
}

func TestRefusalEndsTheGroupOnBothSides(t *testing.T) {
	usage := 100 + int32(report.Usage)
	for _, c := range []struct {
		size int
		send int32 // its code: one that leaves ahead of its receive is over by then
	}{{100, 0}, {waitsForCTS, usage}} {
		t.Run(fmt.Sprint(c.size, " bytes"), func(t *testing.T) {
			a, b := start(t, nil), start(t, nil)
			s, r := pair(t, a, b)
			src, dst := buffer(t, c.size), buffer(t, c.size)
			out, in := send(s, register(t, s, src, c.size)), recv(r, register(t, r, dst, 50))
			drive(t, "a refused send", out, in)
			if out.code != c.send || in.code != usage {
				t.Fatalf("codes %d and %d, want %d and %d", out.code, in.code, c.send, usage)
			}
			if !bytes.Equal(dst, make([]byte, c.size)) {
				t.Error("a byte was written")
			}
			move(t, s, r, 1000) // the comm lives on
			move(t, s, r, waitsForCTS)
			of := fmt.Sprint(c.size, " bytes")
			if a.log.Count("WARN isend", of, "receive of 50") != 1 || b.log.Count("WARN irecv", of, "receive of 50") != 1 {
				t.Errorf("logs: %q %q", a.log.Lines(), b.log.Lines())
			}
		})
	}
}

func TestCloseWithBytesInFlightLosesNone(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	const size, n = 256 << 10, 8
	src, dst := buffer(t, size), buffer(t, size*n)
	for i := range src {
		src[i] = byte(i * 7)
	}
	sb, rb := register(t, s, src, size), register(t, r, dst, size)
	var ins, outs []*transfer
	for i := range n {
		rb.Addr = addrOf(dst[i*size:])
		ins = append(ins, recv(r, rb))
		outs = append(outs, send(s, sb))
	}
	for _, in := range ins {
		eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
	}
	drive(t, "sends handed to the kernel", append(outs, ins[0])...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	drive(t, "receives after the sender's close", ins...)
	for i, in := range ins {
		if in.code != 0 || !bytes.Equal(src, dst[i*size:(i+1)*size]) {
			t.Errorf("message %d: code %d", i, in.code)
		}
	}
}

// A sender that has closed needs no clear-to-send any more, and its socket may go before the receiver has read: what the receiver
// says then must not make the sender's kernel drop the rest.
func TestCloseBeforeTheReceiverReads(t *testing.T) {
	a, b := start(t, nil), start(t, map[string]string{"NCCL_SOCKET_RCVBUF": "65536"})
	l, handle := b.listen(t, wire.HandleMax)
	s, r := meet(t, a, l, handle)
	const size, n = 250 << 10, 2 // they leave ahead
	src, dst := buffer(t, size), buffer(t, size*n)
	for i := range src {
		src[i] = byte(i * 7)
	}
	sb, rb := register(t, s, src, size), register(t, r, dst, size*n)
	drive(t, "sends handed to the kernel", send(s, sb), send(s, sb))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sender's stream is closed, and the control connection is left", func() bool { _, out := connections(t, handle); return out == 1 })
	rb.Size = size
	for i := range n {
		rb.Addr = addrOf(dst[i*size:])
		in := recv(r, rb)
		drive(t, "a receive after the sender's close", in)
		if in.code != 0 || !bytes.Equal(src, dst[i*size:(i+1)*size]) {
			t.Fatalf("message %d: code %d; %q", i, in.code, b.log.Lines())
		}
	}
	in := recv(r, rb) // its clear-to-send has nobody to go to
	drive(t, "a receive without a message", in)
	if in.code != 100+int32(report.Peer) {
		t.Errorf("code %d", in.code)
	}
}

func TestDeregisterCutsRequestsOff(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	dst := buffer(t, 100)
	rb := register(t, r, dst, 100)
	in := recv(r, rb)
	for in.req == 0 {
		in.step()
	}
	if err := r.DeregMr(rb.Handle); err != nil {
		t.Fatal(err)
	}
	if err := r.DeregMr(rb.Handle); report.CauseOf(err) != report.Misuse {
		t.Errorf("second deregMr: %v", err)
	}
	drive(t, "the cut receive", in)
	if in.code != 100+int32(report.Misuse) {
		t.Errorf("code %d", in.code)
	}
	_ = s
}

func TestFaultsAreJudged(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	src := buffer(t, 100)
	if _, code := hostcalls.Isend(s.Handle()+1, hostcalls.Buf{}); code != 100+int32(report.Misuse) {
		t.Errorf("foreign comm: %d", code)
	}
	sb := register(t, s, src, 100)
	sb.Size = 101
	out, in := send(s, sb), recv(r, register(t, r, buffer(t, 200), 200))
	eventually(t, "posting a receive", func() bool { in.step(); return in.req != 0 })
	drive(t, "a send beyond its registration", out)
	if out.code != 100+int32(report.Misuse) {
		t.Errorf("beyond the registration: %d", out.code)
	}
	sb.Size = 100
	drive(t, "the same within", send(s, sb), in)
	in = recv(r, register(t, r, buffer(t, 100), 100))
	in.step()
	s.Close()
	drive(t, "a receive whose peer closed", in)
	if in.code != 100+int32(report.Peer) || b.log.Count("WARN irecv", "the peer closed the connection", "this is an abort") != 1 {
		t.Errorf("code %d, log %q", in.code, b.log.Lines())
	}
}

func TestDMABuf(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	fd, err := unix.MemfdCreate("weft-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	const page, size = 4096, 3 * 4096
	unix.Ftruncate(fd, 4*page)
	want := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	unix.Pwrite(fd, want, 100)
	const fake = 0x7000_0000_0000 // the address that the host names is nowhere in this process
	h, err := s.RegMrDmaBuf(fake, size, 100, fd, rdma.MemDMABUF)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RegMrDmaBuf(fake, size, 2*page, fd, rdma.MemDMABUF); err == nil {
		t.Error("a buffer that ends early was taken")
	}
	unix.Close(fd)
	dst := buffer(t, size)
	out := send(s, hostcalls.Buf{Addr: fake, Size: size, Handle: h})
	in := recv(r, register(t, r, dst, size))
	drive(t, "a DMA-BUF", out, in)
	if !bytes.Equal(dst, want) {
		t.Error("bytes differ")
	}
	if err := s.DeregMr(h); err != nil {
		t.Error(err)
	}
	pipe := make([]int, 2)
	unix.Pipe(pipe)
	if _, err := s.RegMrDmaBuf(fake, size, 0, pipe[0], rdma.MemDMABUF); report.CauseOf(err) != report.Host {
		t.Errorf("a pipe: %v", err)
	}
	unix.Close(pipe[0])
	unix.Close(pipe[1])
}

// A device of sockets takes the host's memory alone, and what it refuses costs the comms nothing.
func TestSocketsTakeHostMemoryOnly(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	at := buffer(t, 4096)
	for _, c := range []*Comm{s, r} {
		if _, err := c.RegMr(addrOf(at), 4096, rdma.MemCUDA); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "cuda memory cannot travel over TCP") {
			t.Error(err)
		}
	}
	move(t, s, r, 5000)
	s.Close()
	r.Close()
}
