package rendezvous_test

import (
	"testing"

	"weft/internal/conns"
	"weft/transport/tcp"
)

// A connection that BBR has begun stays paced, so a stream between processes of one
// host must not begin with it.
func TestStreamsConnectWithTheirCongestionControl(t *testing.T) {
	near, _ := conns.Pair(t)
	if has := tcp.ReadFacts(near.FD).Congestion; has != "reno" {
		t.Errorf("a stream over loopback has connected with %s", has)
	}
}
