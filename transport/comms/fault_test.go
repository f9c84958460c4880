package comms

import (
	"strings"
	"testing"

	"weft/internal/report"
	"weft/transport/fastpath"
)

func TestGateThatStaysHeld(t *testing.T) {
	held := describe(&fastpath.Fault{Kind: fastpath.FaultHeld, Where: "iflush", Want: 11}, "irecv", "lo", "peer")
	if held.Cause != report.Host || !strings.Contains(held.Error(), "11 s") || held.Op != "iflush" || !strings.Contains(held.Remedy, "thread of the host") {
		t.Errorf("%v (%s)", held, held.Remedy)
	}
}
