package nccl

import (
	"fmt"
	"regexp"
	"testing"

	"weft/internal/simverbs"
)

// knobs are settings as a user of NCCL makes them, and the line that shows that they have come through: weft's, or NCCL's
// own of what goes over it. What each does in the transport is its own tests' part.
var knobs = []struct {
	name    string
	env     []string
	line    string            // a pattern; it must not match without the setting
	devices []simverbs.Device // of RDMA; nil: a plain one
	network string            // "" is RDMA
}{
	{name: "HCA", env: []string{"NCCL_IB_HCA==sim1:1"}, line: `RDMA through .* on \[0\]sim1:1`, devices: make([]simverbs.Device, 2)},
	{name: "GID index", env: []string{"NCCL_IB_GID_INDEX=2"}, line: `GIDs 10\.1\.0\.77 and 10\.1\.0\.77`,
		devices: []simverbs.Device{{GIDs: []string{"10.1.0.1/24", "10.1.0.77/24"}}}},
	{name: "address range", env: []string{"NCCL_IB_ADDR_RANGE=10.9.0.0/16"}, line: `GIDs 10\.9\.0\.1 and 10\.9\.0\.1`,
		devices: []simverbs.Device{{GIDs: []string{"10.1.0.1/24", "10.9.0.1/24"}}}},
	{name: "queue pairs", env: []string{"NCCL_IB_QPS_PER_CONNECTION=3"}, line: `1 lane and 2 later .*, 1 QP per message`},
	{name: "split", env: []string{"NCCL_IB_QPS_PER_CONNECTION=4", "NCCL_IB_SPLIT_DATA_ON_QPS=1"}, line: `1 lane and 3 later .*, 4 QPs per message`},
	{name: "adaptive routing", env: []string{"NCCL_IB_ADAPTIVE_ROUTING=1"}, line: `adaptive routing above 8192 bytes`},
	{name: "its threshold", env: []string{"NCCL_IB_ADAPTIVE_ROUTING=1", "NCCL_IB_AR_THRESHOLD=65536"}, line: `adaptive routing above 65536 bytes`},
	{name: "traffic class", env: []string{"NCCL_IB_TC=106"}, line: `TC 106`},
	{name: "service level", env: []string{"NCCL_IB_SL=3"}, line: `SL 3`},
	{name: "inline", env: []string{"NCCL_IB_USE_INLINE=0"}, line: `inline 0`},
	{name: "partition", env: []string{"NCCL_IB_PKEY=1"}, line: `-> .* over sim0 \(`, devices: partitions},
	{name: "partition by its key", env: []string{"NCCL_IB_PKEY_VALUE=0x8222"}, line: `-> .* over sim0 \(`, devices: partitions},
	{name: "GDR level", env: []string{"NCCL_NET_GDR_LEVEL=SYS", "NCCL_NET_GDR_READ=0"}, line: `\[receive\] via NET/weft/[01]/GDRDMA`, network: "GDR"},
	{name: "GDR read", env: []string{"NCCL_NET_GDR_LEVEL=SYS", "NCCL_NET_GDR_READ=1"}, line: `\[send\] via NET/weft/[01]/GDRDMA`, network: "GDR"},
	{name: "streams", env: []string{"NCCL_SOCKET_NTHREADS=2", "NCCL_NSOCKS_PERTHREAD=2"}, line: `over tcp.*, 4 streams`, network: "TCP"},
	{name: "type of service", env: []string{"NCCL_SOCKET_TOS_CONFIG=0x68"}, line: `over tcp.*, TOS 104`, network: "TCP"},
	{name: "congestion control", env: []string{"WEFT_CONGESTION=system"}, line: `over tcp.*, congestion control \S+ \(the system's\)`, network: "TCP"},
}

// Limited members of the first partition do not hear each other.
var partitions = []simverbs.Device{{PKeys: []uint16{0x0111, 0x8222}}}

func TestKnobs(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		mode := []string{"sizes", "max=1M", "step=64", "rounds=1"}
		plain := map[string][]Line{}
		for _, k := range knobs {
			t.Run(k.name, func(t *testing.T) {
				j := Job{Release: r, Ranks: 2, Env: []string{"NCCL_NET_MERGE_LEVEL=LOC", "NCCL_DEBUG_SUBSYS=INIT,ENV,NET"}}
				switch {
				case k.network == "TCP":
					j.Network = tcp(t, r)
				case k.devices == nil:
					j.Network = rdma(t, 1)
				default:
					j.Network = rdmaOf(t, k.devices...)
				}
				if k.network == "GDR" {
					if !r.Since(2, 24) {
						t.Skipf("%s needs nvidia_peermem for GPUDirect, which TestGPUDirect shows", r)
					}
					j.Env = append(j.Env, "SIMGPU_DMABUF=1")
				}
				like := fmt.Sprint(k.network, k.devices)
				if plain[like] == nil {
					other := j
					other.Env = append([]string{"WEFT_TIMEOUT=2"}, j.Env...) // where nothing passes it is soon found
					without := start(t, other, mode...)
					if err := without.Wait(); err != nil {
						t.Fatal(err)
					}
					plain[like] = logOf(t, without)
				}
				j.Env = append(j.Env, k.env...)
				with, pattern := logOf(t, peacefully(t, j, mode...)), regexp.MustCompile(k.line)
				if matches(pattern, with) == 0 || matches(pattern, plain[like]) > 0 {
					t.Errorf("%s matches %d lines with %v, and %d without", k.line, matches(pattern, with), k.env, matches(pattern, plain[like]))
				}
			})
		}
	})
}

func logOf(t *testing.T, run *Run) []Line {
	t.Helper()
	log, err := run.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func matches(p *regexp.Regexp, lines []Line) (n int) {
	for _, l := range lines {
		if p.MatchString(l.Text) {
			n++
		}
	}
	return n
}
