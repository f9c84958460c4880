package transport

import (
	"fmt"
	"testing"
)

// One line for every connection says all that it was agreed to have.
func TestSimConnectionLine(t *testing.T) {
	env := map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "10", "NCCL_IB_TC": "96", "NCCL_IB_SL": "2"}
	a, b, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	x, y := s.carrier.(*verbsCarrier), r.carrier.(*verbsCarrier)
	for _, c := range []struct {
		p          *process
		way        string
		here, peer *verbsCarrier
		gids       string
	}{
		{a, "INFO NET simA -> ", x, y, "10.9.1.1 and 10.9.1.2"}, {b, "INFO NET simB <- ", y, x, "10.9.1.2 and 10.9.1.1"},
	} {
		first, eighth := fmt.Sprintf("(queue pairs %d-%d ", c.here.lanes[0].Number, c.peer.lanes[0].Number), fmt.Sprintf("%d-%d ...)", c.here.lanes[7].Number, c.peer.lanes[7].Number)
		if c.p.log.Count(c.way, " over sim", "GIDs "+c.gids+", MTU 4096", "10 lanes", first, eighth, "SL 2, TC 96", "inline ", "ECE 0x4 of vendor 0x15b3") != 1 {
			t.Errorf("%q", c.p.log.Lines())
		}
	}
}
