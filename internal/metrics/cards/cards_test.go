package cards

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead reads the ports of cards of each driver.
func TestRead(t *testing.T) {
	sys := t.TempDir()
	for name, text := range map[string]string{
		"mlx5_0/ports/1/hw_counters/local_ack_timeout_err": "881\n",
		"mlx5_0/ports/1/hw_counters/np_cnp_sent":           "12\n",
		"mlx5_0/ports/1/hw_counters/lifespan":              "10\n",
		"mlx5_0/ports/1/counters/port_xmit_discards":       "18446744073709551615\n",
		"mlx5_0/ports/1/counters/port_xmit_wait":           "N/A (no PMA)\n",
		"bnxt_re0/ports/1/hw_counters/to_retransmits":      "5\n",
		"ionic_0/ports/1/hw_counters/rx_rdma_cnp_pkts":     "6\n",
		"rxe0/ports/1/hw_counters/link_downed":             "1\n",
		"rxe0/ports/1/counters/link_downed":                "7\n",
		"rxe0/node_desc":                                   "x",
	} {
		path := filepath.Join(sys, "class/infiniband", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []Event{
		{"bnxt_re0", "1", "timeout", "to_retransmits", 5},
		{"ionic_0", "1", "cnp_received", "rx_rdma_cnp_pkts", 6},
		{"mlx5_0", "1", "cnp_sent", "np_cnp_sent", 12},
		{"mlx5_0", "1", "discard", "port_xmit_discards", 1<<64 - 1},
		{"mlx5_0", "1", "timeout", "local_ack_timeout_err", 881},
		{"rxe0", "1", "link_down", "link_downed", 1},
	}
	if d := cmp.Diff(want, Read(sys)); d != "" {
		t.Error(d)
	}
	if all := Read(filepath.Join(sys, "none")); all != nil {
		t.Errorf("a machine without cards has %v", all)
	}
}
