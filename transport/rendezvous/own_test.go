package rendezvous

import (
	"net/netip"
	"testing"
	"time"
)

func TestOwnAddresses(t *testing.T) {
	at := netip.MustParseAddr
	known := &LocalAddrs{at: time.Now().Add(time.Hour), have: map[netip.Addr]struct{}{at("192.0.2.1"): {}, at("192.0.2.7"): {}}}
	untold := &LocalAddrs{at: time.Now().Add(time.Hour)} // the kernel tells nothing
	for _, c := range []struct {
		local, remote netip.Addr
		own           bool
	}{
		{at("127.0.0.1"), at("127.0.0.1"), true},
		{at("127.0.0.1"), at("127.7.8.9"), true},
		{at("::1"), at("::1"), true},
		{at("fe80::1%eth0"), at("fe80::1%eth0"), true},
		{at("192.0.2.1"), at("192.0.2.1"), true},
		{at("192.0.2.1"), at("192.0.2.7"), true},
		{at("192.0.2.1"), at("192.0.2.2"), false},
		{at("2001:db8::1"), at("2001:db8::2"), false},
	} {
		if got := known.Own(c.local, c.remote); got != c.own {
			t.Errorf("%v to %v: %v", c.local, c.remote, got)
		}
	}
	if untold.Own(at("192.0.2.1"), at("192.0.2.2")) || !untold.Own(at("192.0.2.1"), at("192.0.2.1")) {
		t.Error("an address counts as this machine's, or as another's, by nothing")
	}
}
