package tcp

import (
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What a peer on this machine gets goes over lo, whichever interface has the address.
func TestEgress(t *testing.T) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	var e Egress
	for _, ends := range [][2]string{{"127.0.0.1", "127.0.0.2"}, {"::ffff:127.0.0.1", "127.0.0.1"}, {"::1", "::1"}} {
		local, remote := netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])
		if remote.Is6() {
			if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
				continue // this kernel has no IPv6
			}
		}
		if got := e.Interface(s, local, remote); got != "lo" {
			t.Errorf("%v to %v leaves by %q", local, remote, got)
		}
	}
	if _, err := route(netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("0.0.0.1")); err == nil {
		t.Error("a route to nowhere")
	}
	if err := unix.SetsockoptString(s, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo"); err != nil {
		return // kernels before 5.7 want a privilege
	}
	if got := e.Interface(s, netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.9.9.8")); got != "lo" {
		t.Errorf("a bound socket's packets leave by %q", got)
	}
}
