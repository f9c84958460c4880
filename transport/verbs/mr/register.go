package mr

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// register climbs down the ladder: relaxed ordering, plain, and an error that
// says what was tried.
func (pd *PD) register(b *memory.Buffer, s span, access ibv.Access) (ibv.MemoryKeys, string, error) {
	c, lib, length := pd.card, pd.card.Lib, s.end-s.start
	name, plain := "ibv_reg_mr", func(extra ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		if extra&ibv.RelaxedOrdering != 0 {
			return lib.RegMRIOVA2(pd.raw, uintptr(s.start), length, access|extra)
		}
		return lib.RegMR(pd.raw, uintptr(s.start), length, access)
	}
	how := "plain"
	if b.FD >= 0 {
		if pd.direct {
			if keys, how, ok := pd.registerDirect(b, s, access); ok {
				return keys, how, nil
			}
		}
		if why, refused := c.DMABuf.Refused(); refused {
			return ibv.MemoryKeys{}, "", report.Errorf(report.Unsupported, "ibv_reg_dmabuf_mr", "%s", why).On(c.Name).
				Try("set NCCL_DMABUF_ENABLE=0; nvidia_peermem or amdkfd serves GPU memory without DMA-BUF")
		}
		name, how = "ibv_reg_dmabuf_mr", "DMA-BUF"
		plain = func(extra ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
			return lib.RegDMABufMR(pd.raw, s.offset, length, uintptr(s.start), b.FD, access|extra)
		}
	}
	var tried []string
	if !b.Strict && relaxes(c) {
		keys, errno := plain(ibv.RelaxedOrdering)
		if errno == 0 {
			c.Relaxed.Yes()
			return keys, how + ", relaxed ordering", nil
		}
		if b.FD < 0 {
			c.Relaxed.Learn("ibv_reg_mr_iova2", errno)
		}
		tried = append(tried, "with relaxed ordering: "+errno.Error())
	}
	keys, errno := plain(0)
	if errno == 0 {
		if len(tried) > 0 {
			c.Lib.Log.Info(report.Net, "%s registers without relaxed ordering: %s", c.Name, tried[0])
		}
		return keys, how, nil
	}
	what := fmt.Sprintf("%d bytes of %v memory at %#x", length, b.Kind, s.start)
	if b.FD >= 0 {
		what += fmt.Sprintf(", offset %d of descriptor %d", s.offset, b.FD)
		if (s.start^s.offset)%uint64(os.Getpagesize()) != 0 {
			what += " (they lie differently in their pages, which no hardware maps)"
		}
	}
	if len(tried) > 0 {
		what += " (" + strings.Join(tried, "; ") + ")"
	}
	return ibv.MemoryKeys{}, "", fail.Call(name, c.Name, errno, "%s", what)
}

// relaxes reports whether relaxed ordering is wanted and not known to be absent.
func relaxes(c *card.Card) bool {
	_, refused := c.Relaxed.Refused()
	return !refused && c.Lib.Knobs.Int(knob.IBRelaxedOrdering) != 0
}

// registerDirect registers a DMA-BUF through the data-direct function. Where that
// fails the card's own path may do, and what failed is said once.
func (pd *PD) registerDirect(b *memory.Buffer, s span, access ibv.Access) (keys ibv.MemoryKeys, how string, ok bool) {
	c := pd.card
	extras := []ibv.Access{0}
	if !b.Strict && relaxes(c) {
		extras = []ibv.Access{ibv.RelaxedOrdering, 0}
	}
	var errno syscall.Errno
	for _, extra := range extras {
		if keys, errno = c.Lib.MLX5RegDirect(pd.raw, s.offset, s.end-s.start, uintptr(s.start), b.FD, access|extra); errno == 0 {
			how = "data-direct DMA-BUF"
			if extra != 0 {
				how += ", relaxed ordering"
			}
			return keys, how, true
		}
	}
	c.Once("no data-direct path", func() {
		c.Lib.Log.Info(report.Net, "%v", fail.Call("mlx5dv_reg_dmabuf_mr", c.Name, errno, "memory of which the data-direct path takes none is registered on the card's own"))
	})
	return ibv.MemoryKeys{}, "", false
}
