package ranks

import (
	"testing"

	"weft/internal/host"
)

// Links that need several ports, or cards that this machine cannot have; TestRunTellsTheLinks asks the library itself.
func TestLinkOf(t *testing.T) {
	const ib, roce = "NET/weft : device 0 is mlx5_0 port 1: IB, 400000 Mb/s", "NET/weft : device 1 is mlx5_1_dma, mlx5_1 port 2: RoCE, 400000 Mb/s"
	const to = " -> mlx5_0 of node1 pid 7 ([fd00::1]:4791) over "
	for _, c := range []struct {
		line, kind, want string
		others           bool
	}{
		{"mlx5_0" + to + "mlx5_0 (GIDs fe80::1 and fe80::2, MTU 4096), 4 lanes of an earlier connection (QPs 1-2)", "IB", "IB mlx5_0 -> mlx5_0, 4 lanes", false},
		{"mlx5_0" + to + "mlx5_1:2_dma (GIDs 10.0.0.1 and 10.0.0.2, MTU 4096), 1 lane (QPs 1-2)", "RoCE", "RoCE mlx5_0 -> mlx5_0 by way of mlx5_1:2_dma, 1 lane", true},
		{"mlx5_0+mlx5_1" + to + "mlx5_0 (GIDs fe80::1 and fe80::2, MTU 4096), mlx5_1 (GIDs fe80::3 and fe80::4, later), 1 lane and 1 later (QPs 1-2)", "IB", "IB mlx5_0+mlx5_1 -> mlx5_0, 1 lane of 2 agreed", false},
		{"eth0" + to + "tcp (no path from eth0 itself: leaving from 10.0.0.1:9), 4 streams (eth1 10.0.0.1 to 10.0.0.2), MTU 1500", "TCP", "TCP eth0 -> mlx5_0, 4 streams", false},
		{"mlx5_0" + to + "mlx5_9 (GIDs 10.0.0.1 and 10.0.0.2, MTU 4096), 1 lane (QPs 1-2)", "", "not known: the plugin's log does not say", false},
	} {
		l := LinkOf([]host.LogLine{{Text: ib}, {Text: roce}, {Text: "NET/weft : " + c.line}, {Text: "NET/weft : mlx5_0 <- eth9 of node9 pid 8 (10.0.0.9:1) over tcp, 1 stream (x)"}}, Sends)
		if l.Kind != c.kind || l.Text != c.want || l.Others != c.others {
			t.Errorf("%s\nis %q (%s, by others: %v), want %q (%s, %v)", c.line, l.Text, l.Kind, l.Others, c.want, c.kind, c.others)
		}
	}
	// The receiving side knows its own port.
	l := LinkOf([]host.LogLine{{Text: ib}, {Text: roce}, {Text: "NET/weft : mlx5_0 <- mlx5_0 of node1 pid 7 ([fd00::1]:4791) over mlx5_1:2 (GIDs 10.0.0.1 and 10.0.0.2, MTU 4096), 1 lane (QPs 1-2)"}}, Receives)
	if l.Kind != "RoCE" || l.Text != "RoCE mlx5_0 <- mlx5_0 by way of mlx5_1:2, 1 lane" || !l.Others {
		t.Errorf("%+v", l)
	}
}
