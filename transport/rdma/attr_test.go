package rdma

import (
	"math"
	"testing"
)

func TestBusyConnections(t *testing.T) {
	const all = math.MaxUint32 // what NCCL gives where it does not say
	unknown := CommAttr{MaxConcurrentPeers: -1, MinConcurrentPeers: -1, MaxFlowsPerPeer: -1, MinFlowsPerPeer: -1}
	flows := func(n int32) CommAttr { c := unknown; c.MaxFlowsPerPeer = n; return c }
	for _, c := range []struct {
		name     string
		of       CommAttr
		op, algo uint32
		want     int
	}{
		{"nothing is known", unknown, all, all, 0},
		{"zero", CommAttr{}, 0, 0, 0},
		{"one", CommAttr{MaxConcurrentPeers: 1, MaxFlowsPerPeer: 1}, all, all, 1},
		{"peers times flows", CommAttr{MaxConcurrentPeers: 3, MaxFlowsPerPeer: 4}, all, all, 12},
		{"peers without flows", CommAttr{MaxConcurrentPeers: 3, MaxFlowsPerPeer: -1}, all, all, 0},
		{"flows without peers", flows(2), all, all, 0},
		{"a ring's", flows(2), all, AlgoRing, 2},
		{"a tree's", flows(2), all, AlgoTree, 6},
		{"either's", flows(2), all, AlgoRing | AlgoTree, 0},
		{"an operation around a ring", flows(4), OpBroadcast | OpReduce, all, 4},
		{"another operation", flows(4), OpBroadcast | 1<<4, all, 0},
		{"a bound comes first", CommAttr{MaxConcurrentPeers: 2, MaxFlowsPerPeer: 1}, OpReduce, AlgoRing, 2},
	} {
		if got := (Attr{Op: c.op, Algo: c.algo}).Busy(c.of); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for proto, want := range map[uint32]bool{0: false, all: false, ProtoLL: true, ProtoLL128: true, ProtoLL | ProtoLL128: true, ProtoSimple: false, ProtoLL | ProtoSimple: false} {
		if (Attr{Proto: proto}).Small() != want {
			t.Errorf("protocols %#x: small %v", proto, !want)
		}
	}
}
