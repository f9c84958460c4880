package transport

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"weft/internal/report"
)

// ip runs iproute2; what it cannot do here skips the test.
func ip(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		t.Skipf("ip %v: %v %s", words, err, out)
	}
}

// namespace makes a network namespace, which ends with the test.
func namespace(t *testing.T, what string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	ns := fmt.Sprintf("weft-%s-%d", what, os.Getpid())
	ip(t, "netns", "add", ns)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	return ns
}

// cable joins eth0 of two namespaces, with addresses 1 and 2 of net, a /24.
func cable(t *testing.T, a, b, net string) {
	t.Helper()
	ip(t, "-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b)
	for i, ns := range []string{a, b} {
		ip(t, "-n", ns, "addr", "add", fmt.Sprintf("%s.%d/24", net, i+1), "dev", "eth0")
		ip(t, "-n", ns, "link", "set", "eth0", "up")
	}
}

// TestLinkCut, with T = 2 s:
//
//	namespace a, 10.213.77.1 ── veth ── 10.213.77.2, namespace b
//	   waits to send                      waits to receive
//
// The cable is cut while nothing moves: both sides must hear of it.
func TestLinkCut(t *testing.T) {
	a, b := namespace(t, "a"), namespace(t, "b")
	cable(t, a, b, "10.213.77")
	in := func(ns, role, addr string) *peerProcess {
		return spawn(t, role, []string{"WEFT_TIMEOUT=2", childAddr + "=" + addr}, "ip", "netns", "exec", ns)
	}
	receiver := in(b, "wait to receive", "10.213.77.2/24")
	sender := in(a, "wait to send", "10.213.77.1/24")
	io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n")
	if s := sender.line(t); s != "connected" {
		t.Fatal(s)
	}
	for _, want := range []string{"accepted", "posted"} {
		if s := receiver.line(t); s != want {
			t.Fatal(s)
		}
	}
	ip(t, "-n", a, "link", "set", "eth0", "down")
	want := fmt.Sprint("code ", 100+int32(report.Network))
	for _, p := range []*peerProcess{sender, receiver} {
		if s := p.line(t); s != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}
