package tcp

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
)

// available are the congestion controls of this kernel.
func available(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// connected is a socket with a connection over loopback.
func connected(t *testing.T) (fd int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd = socket(t, unix.AF_INET)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestCongestion(t *testing.T) {
	systems := ReadFacts(connected(t)).Congestion
	for _, c := range []struct {
		set      string
		sameHost bool
		name     string
		why      string
	}{
		{"", true, "reno", "same host"},
		{"auto", true, "reno", "same host"},
		{"", false, systems, "the system's"},
		{"auto", false, systems, "the system's"},
		{"system", true, systems, "the system's"},
		{"system", false, systems, "the system's"},
		{"reno", true, "reno", "WEFT_CONGESTION"},
		{"reno", false, "reno", "WEFT_CONGESTION"},
	} {
		fd := connected(t)
		why, err := CongestionFor(knob.Parse(map[string]string{"WEFT_CONGESTION": c.set}), c.sameHost).Apply(fd)
		if has := ReadFacts(fd).Congestion; err != nil || why != c.why || has != c.name {
			t.Errorf("%q, same host %v: %s (%s), %v; want %s (%s)", c.set, c.sameHost, has, why, err, c.name, c.why)
		}
	}
	for _, name := range available(t) {
		fd := connected(t)
		why, err := CongestionFor(knob.Parse(map[string]string{"WEFT_CONGESTION": name}), true).Apply(fd)
		forbidden := err != nil && strings.Contains(err.Error(), "CAP_NET_ADMIN") && ReadFacts(fd).Congestion == systems
		if !forbidden && (err != nil || why != "WEFT_CONGESTION" || ReadFacts(fd).Congestion != name) {
			t.Errorf("%s: %q with %s, %v", name, why, ReadFacts(fd).Congestion, err)
		}
	}
}

// What cannot be had leaves the connection with what it had, and says why.
func TestCongestionThatCannotBeHad(t *testing.T) {
	for _, name := range []string{"none-such", "a-name-that-is-longer-than-any", "two words"} {
		fd := connected(t)
		systems := ReadFacts(fd).Congestion
		why, err := CongestionFor(knob.Parse(map[string]string{"WEFT_CONGESTION": name}), true).Apply(fd)
		if why != "the system's" || ReadFacts(fd).Congestion != systems || err == nil {
			t.Errorf("%s: %q, %v", name, why, err)
			continue
		}
		for _, want := range []string{"WEFT_CONGESTION", fmt.Sprintf("%q", name), "no such file", strings.Join(available(t), ", "), "tcp_available_congestion_control"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", name, err, want)
			}
		}
	}
}

// A process without CAP_NET_ADMIN may choose what the administrator allows.
func TestCongestionThatIsNotAllowed(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Fields(string(text))
	fds := map[string]int{}
	for _, name := range available(t) {
		fds[name] = connected(t)
	}
	withoutNetAdmin(t, func() {
		for name, fd := range fds {
			why, err := CongestionFor(knob.Parse(map[string]string{"WEFT_CONGESTION": name}), true).Apply(fd)
			if slices.Contains(allowed, name) {
				if err != nil || why != "WEFT_CONGESTION" {
					t.Errorf("%s, which is allowed: %q, %v", name, why, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), strings.Join(allowed, ", ")+" (net.ipv4.tcp_allowed_congestion_control)") || why != "the system's" {
				t.Errorf("%s, which is not allowed: %q, %v", name, why, err)
			}
		}
	})
	for _, procfs := range []string{"/proc", "/nonexistent"} {
		if err := refused("x", unix.EPERM, procfs); !strings.Contains(err.Error(), "net.ipv4.tcp_allowed_congestion_control") {
			t.Error(err)
		}
		if err := refused("x", unix.ENOPROTOOPT, procfs); !strings.Contains(err.Error(), "seccomp") {
			t.Error(err)
		}
	}
}

// withoutNetAdmin calls f on a thread that lacks CAP_NET_ADMIN, and ends the thread.
func withoutNetAdmin(t *testing.T, f func()) {
	t.Helper()
	over := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		head, caps := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		err := unix.Capget(&head, &caps[0])
		if err == nil {
			caps[0].Effective &^= 1 << unix.CAP_NET_ADMIN
			err = unix.Capset(&head, &caps[0])
		}
		if err == nil {
			f()
		}
		over <- err
	}()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}
