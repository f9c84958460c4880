package mr

import (
	"syscall"
	"testing"

	"weft/internal/fakeibv"
	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/ibv"
)

// A probe that fails for a reason of its own is no answer, and is not kept.
func TestDMABUFProbeThatTellsNothing(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	c, _ := f.Open(fakeibv.Host(t), nil)
	probes := 0
	c.Lib.RegDMABufMR = func(ibv.Object, uint64, uint64, uintptr, int, ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		probes++
		return ibv.MemoryKeys{}, syscall.ENOMEM
	}
	defer c.Close()
	kinds := DomainsOf(c).Pointers(false)
	if is, _ := c.DMABuf.State(); is != card.Unknown || kinds != rdma.MemHost || probes != 1 {
		t.Errorf("%v, %v after %d probes", is, kinds, probes)
	}
}
