package tcp_test

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
	"weft/transport/tcp"
)

// waitsForCTS is a message that is too large to leave ahead of its receive.
const waitsForCTS = 280_000

// mapped is memory outside Go's heap, as a host's buffers are.
func mapped(t *testing.T, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// side is one end of a connection.
type side struct {
	comm   *fastpath.Comm
	handle uintptr
	mr     uintptr
	mem    []byte
}

func (s *side) buf(off, size int, tag int32) hostcalls.Buf {
	return hostcalls.Buf{Addr: uintptr(unsafe.Pointer(&s.mem[off])), Size: uint64(size), Tag: tag, Handle: s.mr}
}

// connected makes a send comm and a receive comm over n socket pairs.
func connected(t *testing.T, n int, device uint32) (tx, rx *side) {
	t.Helper()
	return connectedBy(t, socketpairs(t, n), device, tcp.Stash)
}

func socketpairs(t *testing.T, n int) (fds [2][]int) {
	t.Helper()
	for range n {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds[0], fds[1] = append(fds[0], p[0]), append(fds[1], p[1])
	}
	return fds
}

// connectedBy makes them over descriptors of either side; stash: bytes that the sender takes the receiver to keep.
func connectedBy(t *testing.T, fds [2][]int, device, stash uint32) (tx, rx *side) {
	t.Helper()
	tx, rx = opened(t, fds, device, stash)
	t.Cleanup(func() {
		tx.end(t, fds[0])
		rx.end(t, fds[1])
	})
	return tx, rx
}

// heard has what the executor tells of comms made from now on kept for the test.
func heard(t *testing.T) {
	fastpath.SetUpcalls(hostcalls.Upcalls())
	t.Cleanup(func() { fastpath.SetUpcalls(nil) })
}

// opened makes them, and the caller ends them.
func opened(t *testing.T, fds [2][]int, device, stash uint32) (tx, rx *side) {
	t.Helper()
	runtime.LockOSThread() // what a receive asks for leaves with later calls of the thread that posted it
	t.Cleanup(runtime.UnlockOSThread)
	sides := [2]*side{}
	for i, kind := range []fastpath.Kind{fastpath.Send, fastpath.Recv} {
		c, err := fastpath.New(fastpath.Options{Kind: kind, Device: device, Cookie: uint64(i) + 1})
		if err != nil {
			t.Fatal(err)
		}
		if h := c.Open(); h != 0 {
			t.Fatalf("a comm without lanes opened as %#x", h)
		}
		if err := tcp.AttachStreams(c, 0, fds[i], stash); err != nil {
			t.Fatal(err)
		}
		s := &side{comm: c, handle: c.Open(), mem: mapped(t, 4<<20)}
		if s.mr, err = fastpath.RegisterMR(fastpath.MR{Device: device, Addr: uintptr(unsafe.Pointer(&s.mem[0])), CPU: uintptr(unsafe.Pointer(&s.mem[0])), Length: uint64(len(s.mem)), Kind: 1, Cookie: 7}); err != nil {
			t.Fatal(err)
		}
		sides[i] = s
	}
	return sides[0], sides[1]
}

// end closes a side and its descriptors.
func (s *side) end(t *testing.T, fds []int) {
	t.Helper()
	_ = s.comm.Close()
	got, _ := tcp.DetachStreams(s.comm)
	if fmt.Sprint(got) != fmt.Sprint(fds) {
		t.Errorf("detached %v of %v", got, fds)
	}
	for _, fd := range got {
		fastpath.UntrackFD(fd)
		_ = unix.Close(fd)
	}
	s.comm.Free()
}

// isend repeats a send until it is taken.
func isend(t *testing.T, s *side, b hostcalls.Buf) uintptr {
	t.Helper()
	r, rc := hostcalls.Send(t, s.handle, b)
	if rc != 0 {
		t.Fatalf("isend returned %d", rc)
	}
	return r
}
