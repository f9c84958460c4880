package transport

import (
	"fmt"
	"strings"
	"testing"

	"weft/transport/rdma"
)

// What the tuning says is what the queue pairs and the executor have.
func TestSimTuning(t *testing.T) {
	a, b := startSim(t, "=simA", map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "3", "WEFT_LAZY": "off"}), startSim(t, "=simB", nil)
	a.ctx.hint(rdma.Attr{Send: rdma.CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 1}, Proto: rdma.ProtoSimple})
	s, r := pair(t, a, b)
	before := posted(s)
	move(t, s, r, 1<<20)
	for i, n := range posted(s) {
		if n == before[i] {
			t.Errorf("lane %d carries nothing", i)
		}
	}
	s.Close()
	r.Close()
	a.ctx.hint(rdma.Attr{Proto: rdma.ProtoLL})
	s, r = pair(t, a, b)
	var inline int
	_, line, _ := strings.Cut(overRDMA(s).Describe(""), "inline ")
	if fmt.Sscan(line, &inline); inline < 256 {
		t.Errorf("%d bytes inline", inline)
	}
	if a.log.Count("INFO", "3 QPs per message, no adaptive routing") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	move(t, s, r, 200)
	s.Close()
	r.Close()
}
