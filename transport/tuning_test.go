package transport

import (
	"math"
	"testing"

	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// The knobs decide; where they leave it open, NCCL's hints do.
func TestTuning(t *testing.T) {
	alone := rdma.CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 1}
	two, three := rdma.CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 2}, rdma.CommAttr{MaxConcurrentPeers: 3, MaxFlowsPerPeer: 1}
	unknown := rdma.Attr{Send: rdma.CommAttr{MaxConcurrentPeers: -1, MaxFlowsPerPeer: -1}, Proto: math.MaxUint32}
	for _, c := range []struct {
		name  string
		from  string
		env   map[string]string
		hints rdma.Attr
		kind  fastpath.Kind
		want  tuning
	}{
		{"nothing known", "=simA", nil, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 0, false}},
		{"hints that say nothing", "=simA", nil, unknown, fastpath.Send, tuning{64, 2, 65536, 0, false}},
		{"one connection at a time takes all lanes", "=simA", nil, rdma.Attr{Send: alone}, fastpath.Send, tuning{64, 6, 65536, 0, false}},
		{"the other direction's hints", "=simA", nil, rdma.Attr{Recv: alone}, fastpath.Send, tuning{64, 2, 65536, 0, false}},
		{"two connections share the lanes", "=simA", nil, rdma.Attr{Send: two}, fastpath.Send, tuning{64, 3, 65536, 0, false}},
		{"three do", "=simA", nil, rdma.Attr{Send: three}, fastpath.Send, tuning{64, 2, 65536, 0, false}},
		{"a ring with one channel", "=simA", nil, rdma.Attr{Recv: rdma.CommAttr{MaxFlowsPerPeer: 1}, Algo: rdma.AlgoRing}, fastpath.Recv, tuning{64, 6, 65536, 0, false}},
		{"the knob, not the hints", "=simA", map[string]string{"NCCL_IB_SPLIT_DATA_ON_QPS": "0"}, rdma.Attr{Send: alone}, fastpath.Send, tuning{64, 2, 65536, 0, false}},
		{"split", "=simA", map[string]string{"NCCL_IB_SPLIT_DATA_ON_QPS": "1", "WEFT_STRIPE_MIN": "5"}, rdma.Attr{}, fastpath.Send, tuning{64, 6, 5, 0, false}},
		{"small messages only", "=simA", nil, rdma.Attr{Proto: rdma.ProtoLL | rdma.ProtoLL128}, fastpath.Send, tuning{256, 2, math.MaxUint32, 0, false}},
		{"small messages, and a knob", "=simA", map[string]string{"WEFT_STRIPE_MIN": "5"}, rdma.Attr{Proto: rdma.ProtoLL}, fastpath.Send, tuning{256, 2, 5, 0, false}},
		{"all protocols", "=simA", nil, rdma.Attr{Proto: 7}, fastpath.Recv, tuning{64, 2, 65536, 0, false}},
		{"adaptive routing", "=simA", map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1"}, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 8192, false}},
		{"its threshold", "=simA", map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_AR_THRESHOLD": "0"}, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 1, false}},
		{"NCCL's own threshold", "=simA", map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_AR_THRESHOLD": "-2"}, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 8192, false}},
		{"InfiniBand routes adaptively", "=simI", nil, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 8192, false}},
		{"unless told not to", "=simI", map[string]string{"NCCL_IB_ADAPTIVE_ROUTING": "0"}, rdma.Attr{}, fastpath.Send, tuning{64, 2, 65536, 0, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startSim(t, c.from, c.env)
			p.ctx.hint(c.hints)
			local := p.Devices()[0].Verbs
			if got := p.ctx.tune(c.kind, []verbsPair{{local: local}, {local: local}}, 6); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTuningIsSaid(t *testing.T) {
	for want, c := range map[string]tuning{
		"1 a message, no adaptive routing":                         {width: 1},
		"2 a message, adaptive routing above 8192 bytes":           {width: 2, ar: 8192},
		"2 a message, adaptive routing above 1 byte":               {width: 2, ar: 1},
		"3 a message, adaptive routing with out-of-order receives": {width: 3, anyOrder: true},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

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
	if n := s.carrier.(*verbsCarrier).lanes[0].qp.Inline; n < smallInline {
		t.Errorf("%d bytes inline", n)
	}
	if a.log.Count("INFO", "3 a message, no adaptive routing") != 1 {
		t.Errorf("%q", a.log.Lines())
	}
	move(t, s, r, 200)
	s.Close()
	r.Close()
}
