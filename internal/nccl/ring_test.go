package nccl

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/internal/simverbs"
)

// spark wraps a rank's command, so that its host is one of the ring.
var spark = []string{"sh", "-c", `WEFT_SIMVERBS_NODE=host$2 exec "$@"`, "sh"}

// ringOf is hosts with four devices each, two for each of two cables, as docs/spark.md has them: the second port of a host leads
// to the first of the next one. Loopback is the network that joins them all.
func ringOf(t *testing.T, hosts int) Network {
	t.Helper()
	n := rdmaOf(t)
	for h := range hosts {
		before := (h + hosts - 1) % hosts
		for f, name := range []string{"rocep1s0f", "roceP2p1s0f"} {
			n.World.Devices = append(n.World.Devices,
				simverbs.Device{Name: name + "0", Node: fmt.Sprintf("host%d", h), GIDs: []string{fmt.Sprintf("10.%d.%d.2/24", before+1, f)}, PCI: fmt.Sprintf("%04x:01:00.0", 2*f)},
				simverbs.Device{Name: name + "1", Node: fmt.Sprintf("host%d", h), GIDs: []string{fmt.Sprintf("10.%d.%d.1/24", h+1, f)}, PCI: fmt.Sprintf("%04x:01:00.1", 2*f)})
		}
	}
	lib, err := library()
	if err != nil {
		t.Fatal(err)
	}
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	if n.env, err = n.World.Env(lib+string(os.PathListSeparator)+dist, ""); err != nil {
		t.Fatal(err)
	}
	return n
}

var goesOver = regexp.MustCompile(`^NET/weft : \S+ -> \S+ of \S+ pid (\d+) .*\) over ([a-zA-Z]+)`)

// Four hosts in a ring of cables, ranks in the order of the cables: neighbours have RDMA, the others TCP, which NCCL connects
// whatever NCCL_ALGO says. NCCL finds no way from its GPU to ports that it has made one of here, hence the merge level.
func TestFourInARing(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 30) {
			t.Skipf("%s: the ring was tried with 2.30", r)
		}
		run := start(t, Job{Release: r, Network: ringOf(t, 4), Ranks: 4, Wrap: spark, Env: []string{"NCCL_ALGO=Ring", "NCCL_NET_MERGE_LEVEL=LOC", "NCCL_DEBUG_SUBSYS=INIT,ENV,NET"}},
			"sizes", "ops=allreduce", "max=1M", "step=16", "rounds=2")
		if err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		rankOf := map[string]int{}
		for _, k := range run.Ranks {
			rankOf[fmt.Sprint(k.Cmd.Process.Pid)] = k.Number
		}
		for _, k := range run.Ranks {
			log, err := run.Log(k.Number)
			if err != nil {
				t.Fatal(err)
			}
			var neighbours, others []string
			for _, l := range log {
				m := goesOver.FindStringSubmatch(l.Text)
				if m == nil {
					continue
				}
				peer, known := rankOf[m[1]]
				if !known {
					t.Fatalf("rank %d: %s", k.Number, l.Text)
				}
				if (peer-k.Number+4)%2 == 1 {
					neighbours = append(neighbours, m[2])
				} else {
					others = append(others, m[2])
				}
			}
			rdma := func(by string) bool { return strings.HasPrefix(by, "roce") }
			if len(neighbours) == 0 || !slices.ContainsFunc(neighbours, rdma) || slices.Contains(neighbours, "tcp") || slices.ContainsFunc(others, rdma) {
				t.Errorf("rank %d: neighbours over %v, others over %v", k.Number, neighbours, others)
			}
		}
	})
}
