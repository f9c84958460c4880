package transport

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

// moves is a carrier that counts.
type moves interface{ Moved() fastpath.Stats }

// seeZeroCopy tells whether the kernel was asked to send without a copy, between two hosts: it says that it copied, since both
// are on this machine.
func seeZeroCopy(t *testing.T, env map[string]string) string {
	a, b := namespace(t, "zero-a"), namespace(t, "zero-b")
	cable(t, a, b, "10.213.81")
	in := func(ns, role, addr string) *peerProcess {
		return spawn(t, role, []string{"WEFT_ZEROCOPY=" + env["WEFT_ZEROCOPY"], childAddr + "=" + addr}, "ip", "netns", "exec", ns)
	}
	receiver, sender := in(b, "receives on", "10.213.81.2/24"), in(a, "sends on", "10.213.81.1/24")
	io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n")
	sender.says(t, "moving")
	io.WriteString(sender.in, "enough\n")
	copies := sender.says(t, "copies")
	for _, p := range []*peerProcess{sender, receiver} {
		if code := p.says(t, "code"); code != "0" {
			t.Errorf("code %s", code)
		}
	}
	for _, ns := range []string{a, b} {
		ip(t, "netns", "del", ns) // another call makes them anew
	}
	return copies
}

// givenUp is a message of which the peer's kernel can take a small part while nobody reads.
const givenUp = 4 << 20

// childGivesUp begins to send, gives the send up as its input says, and writes something else where the message was.
func childGivesUp(x *Context, in *bufio.Reader) error {
	c, err := childConnects(x, in)
	if err != nil {
		return err
	}
	if err := childConnectsToItself(x); err != nil { // the last close of a device deregisters its memory, too
		return err
	}
	b, buf, err := childBuffer(c, givenUp)
	if err != nil {
		return err
	}
	copy(b, bytes.Repeat([]byte{1}, givenUp))
	r := send(c, buf)
	for end := time.Now().Add(testLimit); (r.req == 0 || c.Look().Unsent == 0) && !r.done && time.Now().Before(end); {
		r.step()
	}
	for range 1000 {
		r.step()
	}
	if r.done {
		return errors.New("the send is done, and nobody has read it")
	}
	switch how, _ := in.ReadString('\n'); how {
	case "close\n":
		err = c.Close()
	case "deregMr\n":
		err = c.DeregMr(buf.Handle)
	}
	if err != nil {
		return err
	}
	copy(b, bytes.Repeat([]byte{0xee}, givenUp))
	fmt.Println("given up")
	in.ReadString('\n')
	return nil
}

// childConnectsToItself leaves a connection open.
func childConnectsToItself(x *Context) error {
	h := make([]byte, wire.HandleMax)
	l, err := x.Listen(0, h)
	if err != nil {
		return err
	}
	connected := make(chan error, 1)
	go func() {
		_, err := (&process{ctx: x}).connect(h)
		connected <- err
	}()
	_, err = accept(l)
	return errors.Join(err, <-connected)
}

// childReceivesLate posts a receive, and looks after it only when its input says so.
func childReceivesLate(x *Context, in *bufio.Reader) error {
	c, err := childAccepts(x)
	if err != nil {
		return err
	}
	b, buf, err := childBuffer(c, givenUp)
	if err != nil {
		return err
	}
	r := recv(c, buf)
	for end := time.Now().Add(testLimit); c.Carrier().(moves).Moved().Announced == 0 && time.Now().Before(end); {
		r.step()
	}
	in.ReadString('\n')
	for end := time.Now().Add(testLimit); !r.done && time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.step()
	}
	fmt.Println("code", r.code)
	fmt.Println("spoiled", bytes.IndexByte(b, 0xee) >= 0)
	return nil
}

// Where a host gives a send up of which the kernel still reads the memory, the peer hears of a failure; it never gets what the
// host writes there afterwards.
func TestZeroCopyGivenUp(t *testing.T) {
	for _, how := range []string{"close", "deregMr"} {
		t.Run(how, func(t *testing.T) {
			a, b := namespace(t, "given-a"), namespace(t, "given-b")
			cable(t, a, b, "10.213.82")
			ip(t, "-n", a, "link", "set", "lo", "up") // the way from a host to itself
			in := func(ns, role, addr string) *peerProcess {
				return spawn(t, role, []string{"WEFT_ZEROCOPY=1", childAddr + "=" + addr}, "ip", "netns", "exec", ns)
			}
			receiver, sender := in(b, "receives late", "10.213.82.2/24"), in(a, "gives up", "10.213.82.1/24")
			io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n"+how+"\n")
			sender.says(t, "given up")
			// What has come lies unread at the receiver until the stream is reset; the abort's own message is another connection's.
			eventually(t, "the stream is reset", func() bool { return !unreadIn(t, b) })
			io.WriteString(receiver.in, "\n")
			if code := receiver.says(t, "code"); code == "0" {
				t.Error("the peer takes the message for whole")
			}
			if spoiled := receiver.says(t, "spoiled"); spoiled != "false" {
				t.Error("the peer has what was written after the message was given up")
			}
		})
	}
}

// unreadIn reports whether a connection of a namespace has bytes that nobody has read.
func unreadIn(t *testing.T, ns string) bool {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", ns, "ss", "-tnHO", "state", "established").CombinedOutput()
	if err != nil {
		t.Fatalf("ss, of iproute2 as ip is: %v %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "0" {
			return true
		}
	}
	return false
}
