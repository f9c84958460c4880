package transport

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/internal/report"
)

// hop is two hosts with two switches between, which drop what is larger than the
// MTU of the port that it would leave by, and say nothing:
//
//	namespace a           namespace m                    namespace b
//	10.213.78.1 ── [p0, bridge sw0, q0] ── [q1, sw1, p1] ── 10.213.78.2
type hop struct {
	a, m, b string
	beside  bool // there is a cable beside it, 10.213.79.1 ── 10.213.79.2
}

const hopMTU = 9000

func newHop(t *testing.T) *hop {
	t.Helper()
	h := &hop{a: namespace(t, "hop-a"), m: namespace(t, "hop-m"), b: namespace(t, "hop-b")}
	mtu := fmt.Sprint(hopMTU)
	ip(t, "-n", h.m, "link", "add", "q0", "mtu", mtu, "type", "veth", "peer", "name", "q1", "mtu", mtu)
	for i, ns := range []string{h.a, h.b} {
		sw, port, inner := fmt.Sprint("sw", i), fmt.Sprint("p", i), fmt.Sprint("q", i)
		ip(t, "-n", ns, "link", "add", "eth0", "mtu", mtu, "type", "veth", "peer", "name", port, "mtu", mtu, "netns", h.m)
		ip(t, "-n", ns, "link", "set", "eth0", "gso_max_segs", "1") // what is dropped by its size must be a packet
		ip(t, "-n", ns, "addr", "add", fmt.Sprintf("10.213.78.%d/24", i+1), "dev", "eth0")
		ip(t, "-n", ns, "link", "set", "eth0", "up")
		ip(t, "-n", h.m, "link", "add", sw, "type", "bridge", "forward_delay", "0")
		for _, l := range []string{port, inner} {
			ip(t, "-n", h.m, "link", "set", l, "master", sw, "up")
		}
		ip(t, "-n", h.m, "link", "set", sw, "up")
	}
	return h
}

// cable lays one between the hosts, beside the switches.
func (h *hop) cable(t *testing.T) {
	t.Helper()
	h.beside = true
	ip(t, "-n", h.a, "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns", h.b)
	for i, ns := range []string{h.a, h.b} {
		ip(t, "-n", ns, "addr", "add", fmt.Sprintf("10.213.79.%d/24", i+1), "dev", "eth1")
		ip(t, "-n", ns, "link", "set", "eth1", "up")
	}
}

// narrow has ports of the switches pass packets up to a size.
func (h *hop) narrow(t *testing.T, mtu int, ports ...string) {
	t.Helper()
	for _, port := range ports {
		ip(t, "-n", h.m, "link", "set", port, "mtu", fmt.Sprint(mtu))
	}
}

// processes are the two hosts', not connected yet, with T = 5 s unless env says otherwise.
func (h *hop) processes(t *testing.T, sends, receives string, env ...string) (sender, receiver *peerProcess) {
	in := func(ns, role, addr string) *peerProcess {
		if h.beside {
			addr += "," + strings.Replace(addr, ".78.", ".79.", 1)
		}
		return spawn(t, role, append([]string{"WEFT_TIMEOUT=5", childAddr + "=" + addr}, env...), "ip", "netns", "exec", ns)
	}
	receiver = in(h.b, receives, "10.213.78.2/24")
	sender = in(h.a, sends, "10.213.78.1/24")
	io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n")
	return sender, receiver
}

// says reads lines until one begins so, and returns the rest of it.
func (p *peerProcess) says(t *testing.T, begin string) string {
	t.Helper()
	for {
		if rest, ok := strings.CutPrefix(p.line(t), begin); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// TestPathIsNarrow: hosts of MTU 9000 and a switch that carries less. What passes
// is used, and the connecting side says so.
func TestPathIsNarrow(t *testing.T) {
	for _, test := range []struct {
		name  string
		mtu   int
		ports []string
		uses  string
	}{
		{"both ways", 1500, []string{"q0", "q1"}, "those of 1500 pass"},
		{"towards the listener", 1500, []string{"q0"}, "those of 1500 pass"},
		{"from the listener", 1450, []string{"q1"}, "those of 1400 pass"},
		{"at the sender", 1280, []string{"p0"}, "those of 1280 pass"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHop(t)
			h.narrow(t, test.mtu, test.ports...)
			sender, receiver := h.processes(t, "sends on", "receives on", childStreams+"=3", "WEFT_TIMEOUT=20") // a step is tried in several sizes
			sender.says(t, "moving")
			if said := sender.warned(test.uses); said != 1 {
				t.Errorf("%q is said %d times", test.uses, said)
			}
			io.WriteString(sender.in, "enough\n")
			for _, p := range []*peerProcess{sender, receiver} {
				if code := p.says(t, "code"); code != "0" {
					t.Errorf("code %s", code)
				}
			}
		})
	}
}

// TestPathIsNarrowBesideAnother: a path that carries small packets is the first one still, and its size is found before another
// address joins.
func TestPathIsNarrowBesideAnother(t *testing.T) {
	h := newHop(t)
	h.cable(t)
	h.narrow(t, 1500, "q0", "q1")
	sender, receiver := h.processes(t, "sends on", "receives on", "WEFT_TIMEOUT=20")
	sender.says(t, "moving")
	if said := sender.warned("lost between 10.213.78.1 and 10.213.78.2, those of 1500 pass"); said != 1 {
		t.Errorf("it is said %d times", said)
	}
	io.WriteString(sender.in, "enough\n")
	for _, p := range []*peerProcess{sender, receiver} {
		if code := p.says(t, "code"); code != "0" {
			t.Errorf("code %s", code)
		}
	}
}

// TestPathNarrows: while data moves, what is large begins to be lost. Small packets
// pass still, so that the control connection lives; both sides must hear.
func TestPathNarrows(t *testing.T) {
	for name, ports := range map[string][]string{
		"between the switches":                 {"q0", "q1"},
		"towards the receiver":                 {"q0"},
		"at the sender, which is told of that": {"p0"}, // veth answers the sending host's kernel
	} {
		t.Run(name, func(t *testing.T) {
			h := newHop(t)
			sender, receiver := h.processes(t, "sends on", "receives on")
			sender.says(t, "moving")
			receiver.says(t, "moving")
			h.narrow(t, 1400, ports...)
			heard := map[string]int{}
			for _, p := range []*peerProcess{sender, receiver} {
				heard[p.says(t, "code")]++
			}
			network, peer := fmt.Sprint(100+int32(report.Network)), fmt.Sprint(100+int32(report.Peer))
			if heard[network] == 0 || heard[network]+heard[peer] != 2 {
				t.Errorf("codes %v, want %s where it was found, %s where that is told", heard, network, peer)
			}
		})
	}
}

// TestPathIsNarrowForAMoment: what was lost is repeated once it passes again.
func TestPathIsNarrowForAMoment(t *testing.T) {
	h := newHop(t)
	sender, receiver := h.processes(t, "sends on", "receives on")
	sender.says(t, "moving")
	h.narrow(t, 1400, "q0", "q1")
	time.Sleep(300 * time.Millisecond)
	h.narrow(t, hopMTU, "q0", "q1")
	io.WriteString(sender.in, "enough\n")
	for _, p := range []*peerProcess{sender, receiver} {
		if code := p.says(t, "code"); code != "0" {
			t.Errorf("code %s", code)
		}
	}
}

// childSendsOn connects and sends messages until one fails, or until told that it
// is enough: the last is a short one.
func childSendsOn(x *Context, in *bufio.Reader) error {
	c, err := childConnects(x, in)
	if err != nil {
		return err
	}
	enough := make(chan struct{})
	go func() {
		in.ReadString('\n')
		close(enough)
	}()
	return childMoves(c, func(b hostcalls.Buf) (*transfer, bool) {
		select {
		case <-enough:
			b.Size = 1
			return send(c, b), true
		default:
			return send(c, b), false
		}
	})
}

// childReceivesOn accepts, and receives until that fails or a short message comes.
func childReceivesOn(x *Context, _ *bufio.Reader) error {
	c, err := childAccepts(x)
	if err != nil {
		return err
	}
	return childMoves(c, func(b hostcalls.Buf) (*transfer, bool) { return recv(c, b), false })
}

func childMoves(c *Comm, next func(b hostcalls.Buf) (x *transfer, last bool)) error {
	_, buf, err := childBuffer(c, 1<<20)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		x, last := next(buf)
		for end := time.Now().Add(testLimit); !x.done; x.step() {
			if time.Now().After(end) {
				return errStill
			}
		}
		switch {
		case x.code != 0 || last || x.got[0] == 1:
			fmt.Println("copies", c.Carrier().(moves).Moved().Copies)
			fmt.Println("code", x.code)
			time.Sleep(testLimit) // the peer may not have everything yet, and the test ends this process
			return nil
		case n == 8:
			fmt.Println("moving")
		}
	}
}
