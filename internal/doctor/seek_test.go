package doctor

import (
	"strings"
	"testing"
)

// What a finding names, where it matters.
func TestFindings(t *testing.T) {
	for code, words := range map[string][]string{
		"WEFT-001": {"NCCL_NET_PLUGIN=None", "/root/.nccl.conf, line 3", "sed -i 3d /root/.nccl.conf"},
		"WEFT-002": {"NCCL_NET_PLUGIN=weft (the environment)", "weft and libnccl-net-weft.so not in LD_LIBRARY_PATH (/opt/else)", "export LD_LIBRARY_PATH"},
		"WEFT-003": {"/opt/aws/lib/libnccl-net.so", "/opt/weft/lib/libnccl-net-weft.so", "ln -sf"},
		"WEFT-004": {"2.28 and 2.29", "without a word", "ln -s libnccl-net-weft.so /opt/weft/lib/libnccl-net.so", "ln -s librccl-net-weft.so /opt/weft/lib/librccl-net.so"},
		"WEFT-005": {"/opt/weft/bin/weft", "it is a program", "out of LD_LIBRARY_PATH"},
		"WEFT-006": {"NCCL_NET=Socket", "/etc/nccl.conf, line 1"},
		"WEFT-007": {"/job/nccl.conf, line 2", "export LD_LIBRARY_PATH=/opt/weft/lib"},
		"WEFT-008": {"line 2", `"export NCCL_SOCKET_IFNAME "`, "NCCL_SOCKET_IFNAME=eth0"},
		"WEFT-013": {"did you mean NCCL_SOCKET_IFNAME?", "unset NCCL_SOCKET_IFNMAE", "NCCL_IB_TIMEOUT=999"},
		"WEFT-024": {"mlx5_10", "export NCCL_IB_HCA='=mlx5_0,mlx5_1'"},
		"WEFT-033": {"mlx5_2:1 100 Gb/s", "export NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1'"},
		"WEFT-041": {"entry 1 is RoCE v2, link-local, entry 3 is RoCE v2, IPv4 (10.1.0.7)"},
		"WEFT-052": {"mlx5_0:1 has 400 Gb/s, 0000:18:00.0 x16 at 16 GT/s carries 252 Gb/s"},
		"WEFT-060": {"9000 on eth1; 1500 on eth2", "ip link set eth2 mtu 9000"},
		"WEFT-081": {"setpci -s 0000:1c:00.0 ECAP_ACS+0x6.w=0000"},
		"WEFT-101": {"br-5c1d is made by software", "export NCCL_SOCKET_IFNAME='=eth0'"},
		"WEFT-135": {"symbol_error 7 (2 of it while this was looking)"},
	} {
		var said strings.Builder
		for _, f := range examined(t, "rules/"+code, "broken").Findings() {
			said.WriteString(f.Title + "\n" + f.Evidence + "\n" + f.Consequence + "\n" + f.Remedy + "\n")
		}
		for _, w := range words {
			if !strings.Contains(said.String(), w) {
				t.Errorf("%s does not say %q:\n%s", code, w, said.String())
			}
		}
	}
}

// The rows say what each release asks for and finds, and which find nothing for the next communicator.
func TestRows(t *testing.T) {
	var said []string
	for _, r := range examined(t, "rules/WEFT-004", "broken").Rows() {
		said = append(said, r.Releases+": "+r.Net+" | "+r.Next+" | "+r.Profiler+" | "+r.Tuner)
	}
	const weft = "/opt/weft/lib/libnccl-net-weft.so (weft)"
	for _, want := range []string{
		"NCCL 2.4.2 to 2.10.3: asks for libnccl-net.so: NCCL's own networks |  |  | ",
		"to 2.20.5: asks for libnccl-net-weft.so: " + weft,
		"asks for weft, libnccl-net-weft.so: " + weft + " | asks for libnccl-net.so: NCCL's own networks, without a word | asks for libnccl-profiler.so: " + weft + " | asks for libnccl-tuner.so: " + weft,
		"RCCL on 2.4.2 to 2.10.3: asks for librccl-net.so: NCCL's own networks |  |  | ",
	} {
		found := false
		for _, s := range said {
			found = found || strings.Contains(s, want)
		}
		if !found {
			t.Errorf("nothing says %q:\n%s", want, strings.Join(said, "\n"))
		}
	}
}
