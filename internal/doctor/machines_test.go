package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is wrong with whole machines, and which of their ports and interfaces are used.
func TestMachines(t *testing.T) {
	for _, c := range []struct {
		name, codes string
		used, tcp   string
		status      int
	}{
		{"plain", "", "", "eth0", 0},
		{"roce", "", "mlx5_0:1 mlx5_1:1", "eth0", 0},
		{"dgx-h100", "", "mlx5_0:1 mlx5_10:1 mlx5_11:1 mlx5_3:1 mlx5_4:1 mlx5_5:1 mlx5_6:1 mlx5_9:1", "eth0", 0},
		{"dgx-spark", "", "roceP2p1s0f0:1 roceP2p1s0f1:1 rocep1s0f0:1 rocep1s0f1:1", "eth0", 0},
		{"cloud-vm", "", "", "eth0", 0},
		{"bare", "WEFT-002", "", "eth0", 1},
		{"dgx-spark-broken", "WEFT-036 WEFT-061 WEFT-110", "rocep1s0f0:1", "eth0", 1},
		{"container-broken", "WEFT-015 WEFT-021 WEFT-045 WEFT-070 WEFT-072 WEFT-075", "", "eth0", 1},
		{"node-broken", "WEFT-003 WEFT-006 WEFT-008 WEFT-013 WEFT-041 WEFT-050 WEFT-060 WEFT-093 WEFT-130 WEFT-135", "mlx5_0:1 mlx5_1:1", "eth0", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := examined(t, "machines/"+c.name, "").Host()
			var codes, used, tcp []string
			for _, f := range h.Findings {
				if len(codes) == 0 || codes[len(codes)-1] != f.Code {
					codes = append(codes, f.Code)
				}
			}
			for _, d := range h.Devices {
				if d.Used {
					used = append(used, d.Name)
				}
			}
			for _, i := range h.Interfaces {
				if i.Used {
					tcp = append(tcp, i.Name)
				}
			}
			if d := cmp.Diff([]string{c.codes, c.used, c.tcp}, []string{strings.Join(codes, " "), strings.Join(used, " "), strings.Join(tcp, " ")}); d != "" {
				var b strings.Builder
				h.Print(&b)
				t.Errorf("(-want +got):\n%s\n%s", d, b.String())
			}
			if got := NewReport(h).Status(); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
		})
	}
}
