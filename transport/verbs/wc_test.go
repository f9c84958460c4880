package verbs

import (
	"strings"
	"testing"

	"weft/transport/rdma"
)

func TestCompletionsAreExplained(t *testing.T) {
	f := newFake(t, roce("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	q, err := b.qp(QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		c     Completion
		cause rdma.Cause
		parts []string
		not   string
	}{
		{Completion{Status: 12, Vendor: 0x81, QPN: q.Number, QP: q, Work: "data write"}, rdma.Network,
			[]string{"completion on a: data write ended RETRY_EXC_ERR (12), vendor code 0x81, queue pair ", " in state INIT, port 1 active; likely, in this order: the peer's process or host is gone; the path is cut"}, ""},
		{Completion{Status: 4, QPN: 7}, rdma.Host, []string{"a request ended LOC_PROT_ERR (4), vendor code 0x0, queue pair 7; likely", "not registered"}, "PFC"},
		{Completion{Status: 10, QPN: 7}, rdma.Peer, []string{"REM_ACCESS_ERR", "deregistered"}, ""},
		{Completion{Status: 5, QPN: 7}, rdma.Network, []string{"WR_FLUSH_ERR", "path MTU"}, ""},
		{Completion{Status: 99, QPN: 7}, rdma.Host, []string{"status 99 (99)"}, "likely"},
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
	q.Close()
	b.end()
}
