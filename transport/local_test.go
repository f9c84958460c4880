package transport

import (
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/wire"
)

// A listener that another host could reach by loopback alone is refused at once, by the name of its host; other addresses
// beside it are tried, and loopback is left out.
func TestLoopbackOfAnotherHost(t *testing.T) {
	for _, size := range []int{wire.HandleMin, wire.HandleMax} {
		a, b := start(t, nil, lo(1)), start(t, nil, lo(1))
		b.Core.host = "node7"
		b.Core.net.Origin = a.Core.net.Origin%255 + 1
		_, handle := b.listen(t, size)
		_, err := a.ctx.Connect(0, -1, handle)
		if err == nil || report.CauseOf(err) != report.Peer || !strings.Contains(err.Error(), "host node7 listens at loopback only") || !strings.Contains(err.Error(), "NCCL_SOCKET_IFNAME") {
			t.Errorf("%d: %v", size, err)
		}
	}
}
