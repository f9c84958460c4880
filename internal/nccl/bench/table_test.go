package main

import (
	"strings"
	"testing"

	"weft/internal/nccl"
)

func TestTable(t *testing.T) {
	var table table
	check := func(want string) {
		t.Helper()
		if got := table.String(); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("got\n%s\nnot%s", got, want)
		}
	}
	for i, round := range []struct {
		side      int
		median    float64
		disturbed bool
	}{{0, 10, false}, {1, 40, false}, {1, 10, false}, {0, 20, true}, {0, 40, false}, {1, 20, false}} {
		speeds := []nccl.Speed{{Op: "alltoall", Bytes: 512, Median: round.median, Least: 1}, {Op: "alltoall", Bytes: 64 << 10, Median: 2 * round.median, Least: 1}}
		if err := table.add(round.side, speeds, round.disturbed); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0: // ended in its first round
			check("")
		case 2: // in its second
			check(`
  alltoall             512         10.0         25.0     2.50   4.00 to 4.00 
  alltoall             64K         20.0         50.0     2.50   4.00 to 4.00 
`)
		}
	}
	check(`
  alltoall             512         20.0         20.0     1.00   0.50 to 4.00 ~
  alltoall             64K         40.0         40.0     1.00   0.50 to 4.00 ~
`)
	if err := table.add(0, []nccl.Speed{{Op: "alltoall", Bytes: 4096, Median: 1}}, false); err == nil {
		t.Error("figures of another size are taken for those of 512 bytes")
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{8: "8", 512: "512", 1024: "1K", 1500: "1500", 64 << 10: "64K", 3 << 20: "3M", 1<<20 + 512: "1049088"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes are %s, not %s", n, got, want)
		}
	}
}
