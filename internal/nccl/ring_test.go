package nccl

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/internal/build"
	"weft/internal/metrics"
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
// whatever NCCL_ALGO says. By rings nothing goes there; trees do. NCCL finds no way from its GPU to ports that it has made one of
// here, hence the merge level.
func TestFourInARing(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 30) {
			t.Skipf("%s: the ring was tried with 2.30", r)
		}
		for algo, leaves := range map[string]bool{"Ring": false, "Tree": true} {
			neighbours, others := carried(t, Job{Release: r, Network: ringOf(t, 4), Ranks: 4, Wrap: spark, Env: []string{
				"NCCL_ALGO=" + algo, "NCCL_NET_MERGE_LEVEL=LOC", "NCCL_DEBUG_SUBSYS=INIT,ENV,NET"}})
			if neighbours == 0 || (others > 0) != leaves {
				t.Errorf("%s: %d bytes to neighbours, %d to others", algo, neighbours, others)
			}
		}
	})
}

// carried runs all-reduces of four ranks in a ring, holds what each connection goes over against the cables, and returns the bytes
// that were sent to neighbours and to others.
func carried(t *testing.T, j Job) (neighbours, others uint64) {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j.Env = append(j.Env, "WEFT_PROFILE=metrics", "WEFT_PROFILE_DIR="+dir, "NCCL_PROFILER_PLUGIN="+lib)
	run := start(t, j, "sizes", "ops=allreduce", "max=1M", "step=16", "rounds=2")
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	rankOf := map[int]int{}
	for _, k := range run.Ranks {
		rankOf[k.Cmd.Process.Pid] = k.Number
	}
	next := func(rank, pid int) bool {
		peer, known := rankOf[pid]
		if !known {
			t.Fatalf("rank %d names process %d", rank, pid)
		}
		return (peer-rank+4)%2 == 1
	}
	for _, k := range run.Ranks {
		log, err := run.Log(k.Number)
		if err != nil {
			t.Fatal(err)
		}
		var cables, rest []string
		for _, l := range log {
			m := goesOver.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			pid, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			if next(k.Number, pid) {
				cables = append(cables, m[2])
			} else {
				rest = append(rest, m[2])
			}
		}
		rdma := func(by string) bool { return strings.HasPrefix(by, "roce") }
		if !slices.ContainsFunc(cables, rdma) || slices.Contains(cables, "tcp") || slices.ContainsFunc(rest, rdma) {
			t.Errorf("rank %d: neighbours over %v, others over %v", k.Number, cables, rest)
		}
	}
	files, bad, err := metrics.Load([]string{dir})
	if err != nil || len(bad) != 0 || len(files) != len(run.Ranks) {
		t.Fatalf("%d files, %v %v", len(files), err, bad)
	}
	for _, f := range files {
		for _, s := range f.Sums() {
			switch {
			case !s.Sends:
			case next(rankOf[int(f.PID)], int(s.PeerPID)):
				neighbours += s.Counts.Bytes
			default:
				others += s.Counts.Bytes
			}
		}
	}
	return neighbours, others
}
