package transport

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/transport/rdma"
	"weft/transport/wire"
)

const (
	exitMessage  = 1 << 20
	exitSmall    = 8 // leaves ahead of its receive
	exitMessages = 64
)

// childBuffer is like buffer, for a process that is about to end.
func childBuffer(x *Comm, size int) ([]byte, hostcalls.Buf, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, hostcalls.Buf{}, err
	}
	h, err := x.RegMr(addrOf(b), uint64(size), rdma.MemHost)
	return b, hostcalls.Buf{Addr: addrOf(b), Size: uint64(size), Handle: h}, err
}

// childSends connects, hands 64 messages of that size to the kernel, closes and exits after linger. A host's exit waits up
// to 2 s for what is under way; a test's waits for nothing.
func childSends(size int, linger time.Duration) func(*Context, *bufio.Reader) error {
	return func(x *Context, in *bufio.Reader) error {
		s, err := childConnects(x, in)
		if err != nil {
			return err
		}
		b, buf, err := childBuffer(s, size)
		if err != nil {
			return err
		}
		for i := range b {
			b[i] = byte(i * 13)
		}
		for range exitMessages {
			out := send(s, buf)
			for end := time.Now().Add(testLimit); !out.done; out.step() {
				if time.Now().After(end) {
					return fmt.Errorf("send: %w", errStill)
				}
			}
			if out.code != 0 {
				return fmt.Errorf("send: code %d", out.code)
			}
		}
		err = s.Close()
		time.Sleep(linger)
		return err
	}
}

// childWaitsToReceive accepts and tests a receive that nobody will ever match;
// it prints when it is posted, and the code that ends it.
func childWaitsToReceive(x *Context, in *bufio.Reader) error {
	c, err := childAccepts(x)
	if err != nil {
		return err
	}
	return childWaits(c, func(c *Comm, b hostcalls.Buf) *transfer {
		b.Tag = 1
		r := recv(c, b)
		for end := time.Now().Add(testLimit); r.req == 0 && !r.done && time.Now().Before(end); {
			r.step()
		}
		fmt.Println("posted")
		return r
	})
}

// childWaitsToSend is the same from the connecting side.
func childWaitsToSend(x *Context, in *bufio.Reader) error {
	c, err := childConnects(x, in)
	if err != nil {
		return err
	}
	return childWaits(c, send)
}

func childWaits(c *Comm, post func(*Comm, hostcalls.Buf) *transfer) error {
	_, buf, err := childBuffer(c, waitsForCTS)
	if err != nil {
		return err
	}
	r := post(c, buf)
	for end := time.Now().Add(testLimit); !r.done && time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.step()
	}
	fmt.Println("code", r.code)
	return nil
}

func TestEveryByteOfAProcessThatExits(t *testing.T) {
	b := start(t, nil)
	l, h := b.listen(t, wire.HandleMax)
	p := spawn(t, "send", nil)
	io.WriteString(p.in, hex.EncodeToString(h)+"\n")
	r, err := accept(l)
	if err != nil {
		t.Fatal(err)
	}
	dst := buffer(t, exitMessage*exitMessages)
	mr := register(t, r, dst, exitMessage)
	var ins []*transfer
	for i := range exitMessages {
		one := mr
		one.Addr += uintptr(i * exitMessage)
		ins = append(ins, recv(r, one))
	}
	// Post a window, let the sender run ahead into the kernel's buffers and exit.
	for i := range 8 {
		eventually(t, "posting a receive", func() bool { ins[i].step(); return ins[i].req != 0 })
	}
	for first := 0; first < exitMessages; first += 8 {
		drive(t, "receives from a process that exits", ins[first:min(first+16, exitMessages)]...)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, in := range ins {
		if in.code != 0 || in.got[0] != exitMessage {
			t.Fatalf("message %d: code %d, %d bytes", i, in.code, in.got[0])
		}
	}
	for i, x := range dst {
		if x != byte(i%exitMessage*13) {
			t.Fatalf("byte %d is %#x", i, x)
		}
	}
}

// Messages that left ahead of their receives are there for a host that asks for them after their sender's process has ended.
func TestAheadOfAProcessThatExits(t *testing.T) {
	b := start(t, nil)
	l, h := b.listen(t, wire.HandleMax)
	p := spawn(t, "send small", nil)
	io.WriteString(p.in, hex.EncodeToString(h)+"\n")
	r, err := accept(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the control connection is noticed", func() bool { return r.Member().Session.Over() != nil })
	dst := buffer(t, exitSmall*exitMessages)
	mr := register(t, r, dst, exitSmall)
	for i := range exitMessages {
		this := dst[i*exitSmall : (i+1)*exitSmall]
		mr.Addr = addrOf(this)
		in := recv(r, mr)
		drive(t, "a receive after its sender's end", in)
		if in.code != 0 || this[exitSmall-1] != byte((exitSmall-1)*13%256) {
			t.Fatalf("message %d: code %d, %x: %q", i, in.code, this, b.log.Lines())
		}
	}
}
