package choose

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"weft/collnet/schedule"
)

var update = flag.Bool("update", false, "write testdata/table.txt")

// The table shows what is expected of the all-reduce of up to 1,024 ranks, one of NCCL's on each node, beside the fastest of
// NCCL's rings and trees: so that a change of the model is seen in all that it changes.
func TestTable(t *testing.T) {
	var b strings.Builder
	for _, p := range []struct {
		what   string
		path   Path
		copied bool
	}{{"RDMA", rdma, false}, {"TCP", tcp, true}} {
		fmt.Fprintf(&b, "%s: %v, %.1f GB/s\n%6s %10s  %-9s %6s %12s %12s %12s %8s\n", p.what, p.path.Latency, p.path.Bandwidth/1e9,
			"ranks", "bytes", "algorithm", "rounds", "time", "ring", "tree", "by NCCL")
		for _, n := range []int{2, 3, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1000, 1024} {
			for _, bytes := range []int64{8, 64 << 10, 1 << 20, 64 << 20, 1 << 30} {
				op, f := allReduce(n, bytes), fabric(n, nil, p.path)
				f.Copied = p.copied
				a, _ := Of(f).Pick(op)
				ring, tree := fastest(RingTime, op, f), fastest(TreeTime, op, f)
				fmt.Fprintf(&b, "%6d %10d  %-9v %6.0f %12v %12v %12v %7.2fx\n", n, bytes, a, costOf(op, a).rounds, short(Time(op, a, f)), short(ring), short(tree),
					Of(f).OffloadTime(op, n, n, true).Seconds()/min(ring, tree).Seconds())
			}
		}
	}
	const file = "testdata/table.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s is not what the model says (%v); go test ./collnet/choose -update writes it:\n%s", file, err, &b)
	}
}

// fastest is the least of an algorithm's times with NCCL's protocols.
func fastest(of func(schedule.Op, int, int, Fabric, Protocol) time.Duration, op schedule.Op, f Fabric) time.Duration {
	least := of(op, f.N, f.N, f, LL)
	for p := range Protocols {
		least = min(least, of(op, f.N, f.N, f, p))
	}
	return least
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Nanosecond) }

// What is picked takes no longer than the ring of the same ranks.
func TestPickIsNotSlowerThanOurRing(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 31, 64, 100, 1000} {
		for bytes := int64(8); bytes <= 1<<30; bytes *= 8 {
			op, f := allReduce(n, bytes), fabric(n, nil, tcp)
			if a, _ := Of(f).Pick(op); Time(op, a, f) > Time(op, schedule.Ring, f) {
				t.Errorf("%v of %d bytes, %d ranks: slower than a ring", a, bytes, n)
			}
		}
	}
}
