package transport

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"weft/transport/tcp"
)

var congestionLine = regexp.MustCompile(`, congestion control (\S+) \((.*)\)$`)

// seeCongestion tells from the lines of a connection over loopback why its streams
// have their congestion control, and asks the kernel about those and the control
// connection.
func seeCongestion(t *testing.T, env map[string]string) string {
	a, b := loopback(t, env)
	s, r := pair(t, a, b)
	defer s.Close()
	defer r.Close()
	why := map[string]bool{}
	for p, c := range map[*process]*Comm{a: s, b: r} {
		for _, line := range p.log.Lines() {
			m := congestionLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			why[m[2]] = true
			for _, fd := range fdsOf(c) {
				if name := tcp.ReadFacts(fd).Congestion; name != m[1] {
					t.Errorf("%q, and the kernel says %s", line, name)
				}
			}
		}
		if name, want := tcp.ReadFacts(c.Member().Session.Conn.FD).Congestion, systemsCongestion(t); name != want {
			t.Errorf("the control connection has %s, the system's is %s", name, want)
		}
	}
	if len(why) != 1 {
		t.Errorf("reasons: %v", why)
	}
	for text := range why {
		return text
	}
	return "no line"
}

func systemsCongestion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// One that cannot be had is said once per process; connections serve without it.
func TestCongestionThatCannotBeHad(t *testing.T) {
	a, b := loopback(t, map[string]string{"WEFT_CONGESTION": "none-such"})
	for range 2 {
		s, r := pair(t, a, b)
		move(t, s, r, 100_000)
		defer s.Close()
		defer r.Close()
	}
	for _, p := range []*process{a, b} {
		if p.log.Count("WARN", "lo 127.0.0.1 to 127.0.0.1", `TCP_CONGESTION="none-such"`, "net.ipv4.tcp_available_congestion_control") != 1 || p.log.Count("WARN") != 1 {
			t.Errorf("%q", p.log.Lines())
		}
		if p.log.Count("INFO", "congestion control "+systemsCongestion(t)+" (the system's)") != 2 {
			t.Errorf("%q", p.log.Lines())
		}
	}
}

// TestCongestionBetweenHosts: namespace a, 10.213.79.1 ── veth ── 10.213.79.2, namespace b. What the administrator chose
// there is left alone unless a name is asked for; within a, from one interface's address to another's, it is one host.
func TestCongestionBetweenHosts(t *testing.T) {
	a, b := namespace(t, "cc-a"), namespace(t, "cc-b")
	cable(t, a, b, "10.213.79")
	ip(t, "-n", a, "link", "set", "lo", "up")
	ip(t, "-n", a, "link", "add", "eth1", "type", "veth", "peer", "name", "eth2")
	ip(t, "-n", a, "addr", "add", "10.213.80.1/24", "dev", "eth1")
	ip(t, "-n", a, "link", "set", "eth1", "up")
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control") // what a namespace may be given
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range strings.Fields(string(text)) {
		for _, ns := range []string{a, b} {
			ip(t, "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.tcp_congestion_control="+chosen)
		}
		for _, c := range []struct{ name, receivesIn, at, set, want string }{
			{"another host", b, "10.213.79.2/24", "", chosen},
			{"another host, system", b, "10.213.79.2/24", "system", chosen},
			{"another host, by name", b, "10.213.79.2/24", "reno", "reno"},
			{"one host", a, "10.213.80.1/24", "", "reno"},
			{"one host, system", a, "10.213.80.1/24", "system", chosen},
		} {
			t.Run(chosen+", "+c.name, func(t *testing.T) {
				env := func(addr string) []string { return []string{"WEFT_CONGESTION=" + c.set, childAddr + "=" + addr} }
				receiver := spawn(t, "wait to receive", env(c.at), "ip", "netns", "exec", c.receivesIn)
				sender := spawn(t, "wait to send", env("10.213.79.1/24"), "ip", "netns", "exec", a)
				io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n")
				for _, p := range []*peerProcess{sender, receiver} {
					p.line(t)
				}
				for _, ns := range []string{a, c.receivesIn} {
					ends := 2 // of them here, of each connection
					if c.receivesIn == b {
						ends = 1
					}
					have := establishedIn(t, ns)
					want := map[string]int{}
					want[chosen] += ends // of the control connection
					want[c.want] += ends
					if fmt.Sprint(have) != fmt.Sprint(want) {
						t.Errorf("in %s: %v, want %v", ns, have, want)
					}
				}
			})
		}
	}
}

// establishedIn counts the connections of a namespace by their congestion control.
func establishedIn(t *testing.T, ns string) map[string]int {
	t.Helper()
	out, err := exec.Command("ip", "netns", "exec", ns, "ss", "-tinHO", "state", "established").CombinedOutput()
	if err != nil {
		t.Fatalf("ss, of iproute2 as ip is: %v %s", err, out)
	}
	have := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)\s([a-z]+) (?:wscale|rto):`).FindAllStringSubmatch(string(out), -1) {
		have[m[1]]++
	}
	return have
}
