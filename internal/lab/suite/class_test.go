package suite

import (
	"slices"
	"strings"
	"testing"

	"weft/internal/lab"
)

// class shows that a traffic class is in the packets: the kernel of the
// receiving end drops those of one class, and RDMA with that class does not
// come through (TCP, which has none, does), while RDMA with another one does.
func class(t *testing.T, n *lab.Node, c lab.Cable) {
	noLeak(t, n)
	const dropped, other = "16", "8"
	rule := func(do string) {
		if _, err := n.Output("ip", "rule", do, "pref", "5", "iif", c.Ends[1].NIC, "tos", "0x10", "blackhole"); err != nil {
			t.Fatal(err)
		}
	}
	rule("add")
	defer rule("del")
	for _, x := range []struct {
		class string
		over  []string
	}{{dropped, []string{"tcp"}}, {other, []string{c.Ends[0].RDMA, c.Ends[1].RDMA}}} {
		env := []string{"NCCL_IB_TC=" + x.class, "NCCL_SOCKET_TOS_CONFIG=0"}
		for i, end := range both(t, n, c, env, "--sizes", "8,64K", "--iters", "2") {
			o := <-end
			right(t, i, o)
			overRDMA(t, o, 2, x.over...)
			if carried := slices.Contains(comms(o.out.String()), "tcp"); !carried && !strings.Contains(o.out.String(), "TC "+x.class+",") {
				t.Errorf("rank %d does not say its class\n%s", i, o.text())
			}
		}
	}
}
