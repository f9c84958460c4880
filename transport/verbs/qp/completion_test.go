package qp

import (
	"strings"
	"testing"

	"weft/internal/fakeibv"
	"weft/internal/report"
)

func TestCompletionsAreExplained(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	q, err := b.qp(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		c     Completion
		cause report.Cause
		parts []string
		not   string
	}{
		{Completion{Status: 12, Vendor: 0x81, QPN: q.Number, QP: q, Work: "data write"}, report.Network,
			[]string{"completion on a: data write ended RETRY_EXC_ERR (12), vendor code 0x81, QP ", " in state INIT, port 1 active; likely, in this order: the peer's process or host is gone; the path is cut"}, ""},
		{Completion{Status: 4, QPN: 7}, report.Host, []string{"a request ended LOC_PROT_ERR (4), vendor code 0x0, QP 7; likely", "not registered"}, "PFC"},
		{Completion{Status: 10, QPN: 7}, report.Peer, []string{"REM_ACCESS_ERR", "deregistered"}, ""},
		{Completion{Status: 5, QPN: 7}, report.Network, []string{"WR_FLUSH_ERR", "path MTU"}, ""},
		{Completion{Status: 2, QPN: q.Number, QP: q}, report.Internal, []string{"LOC_QP_OP_ERR", "port 1 active; likely, in this order: a request that this QP cannot do"}, "cable"},
		{Completion{Status: 99, QPN: 7}, report.Host, []string{"status 99 (99)"}, "likely"},
	} {
		e := c.c.Explain()
		if e.Cause != c.cause || strings.Contains(e.Error(), "\n") || c.not != "" && strings.Contains(e.Error(), c.not) {
			t.Errorf("%v: %v", e.Cause, e)
		}
		for _, p := range c.parts {
			if !strings.Contains(e.Error(), p) {
				t.Errorf("%q lacks %q", e, p)
			}
		}
	}
	// A port whose link is down says more than the statuses that follow from it, and nothing about the others.
	port := &f.Cards[0].Ports[0]
	for _, c := range []struct {
		status uint32
		state  int32
		cause  report.Cause
		want   string
	}{
		{2, 1, report.Network, "port 1 down; likely, in this order: this port's link: cable, switch port, or the network device behind it; a request that"},
		{12, 1, report.Network, "port 1 down; likely, in this order: this port's link"},
		{5, 2, report.Network, "port 1 initialising; likely, in this order: this port's link"},
		{10, 1, report.Peer, "port 1 down; likely, in this order: the peer deregistered"},
		{2, -1, report.Host, "port 1 cannot be queried (input/output error); likely, in this order: the device is gone or was reset"},
	} {
		f.Lock()
		port.State, port.Unreadable = c.state, c.state < 0
		f.Unlock()
		if e := (Completion{Status: c.status, QPN: q.Number, QP: q}).Explain(); e.Cause != c.cause || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%d in state %d: %v: %v", c.status, c.state, e.Cause, e)
		}
	}
	q.Close()
	b.end()
}
