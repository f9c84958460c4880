package memory

import (
	"testing"

	"weft/internal/report"
	"weft/transport/rdma"
)

func TestBuffersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		addr uintptr
		size uint64
	}{{0x1000, 0}, {^uintptr(0), 2}, {0x1000, 1<<64 - 1}} {
		if _, err := NewBuffer(c.addr, c.size, rdma.MemHost); report.CauseOf(err) != report.Misuse {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
