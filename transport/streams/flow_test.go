package streams_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/rdma"
	"weft/transport/streams"
	"weft/transport/tcp"
)

// host is a comm that only fails.
type host struct {
	carrier.Comm
	failed error
}

func (h *host) Verb() string   { return "isend" }
func (h *host) Fail(err error) { h.failed = err }

// A stream whose packets do not arrive ends the comm with its own path, and with a ping that finds the MTU there.
func TestNoPathNamesThePing(t *testing.T) {
	for _, c := range []struct {
		stream int
		path   string
		ping   string // -s is what an IP header and one of ICMP leave of the MTU
	}{
		{0, "eth0 10.0.0.1 to 10.0.0.2", "ping -M do -s 8972"},
		{1, "eth1 fd00::1 to fd00::2", "ping -M do -s 8952"},
		{2, "eth0 10.0.0.1 to 10.0.0.2", "ping -M do -s 8972"},
	} {
		h := &host{}
		v := streams.NewCarrier(h, &device.Device{Device: rdma.Device{Name: "eth0"}}, "host1", []string{"eth0 10.0.0.1 to 10.0.0.2", "eth1 fd00::1 to fd00::2"}, []int{0, 1, 0})
		v.NoPath(c.stream, &tcp.Flow{MTU: 9000, Repeats: 7}, 10*time.Second)
		e := (*report.Error)(nil)
		if !errors.As(h.failed, &e) || e.Cause != report.Network || e.Op != "isend" || e.Dev != "eth0" || e.Peer != "host1" ||
			!strings.Contains(e.Error(), c.path) || !strings.Contains(e.Error(), "7 repetitions") || !strings.Contains(e.Remedy, c.ping) {
			t.Errorf("stream %d: %v", c.stream, h.failed)
		}
	}
}
