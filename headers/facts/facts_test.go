package facts_test

import (
	"testing"

	"weft/headers"
	"weft/headers/facts"
)

// Releases come oldest first, and each looks up its tables newest first.
func TestReleases(t *testing.T) {
	rs, err := facts.Releases(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) != 62 || rs[0].Release != "2.4.2" || rs[len(rs)-1].Release != "2.32.3" {
		t.Fatalf("%d releases from %s to %s; 62 from 2.4.2 to 2.32.3 were measured", len(rs), rs[0].Release, rs[len(rs)-1].Release)
	}
	for i, r := range rs {
		if i > 0 && r.Date < rs[i-1].Date && r.Net[0] < rs[i-1].Net[0] {
			t.Errorf("%s comes after %s but is older", r.Release, rs[i-1].Release)
		}
		for _, versions := range [][]int{r.Net, r.CollNet, r.Profiler, r.Tuner} {
			for j := 1; j < len(versions); j++ {
				if versions[j] != versions[j-1]-1 {
					t.Errorf("%s looks up versions %v: not newest first without a gap", r.Release, versions)
				}
			}
		}
		if len(r.Net) == 0 || r.Limits["NCCL_NET_HANDLE_MAXSIZE"] == 0 || r.LastResult < 5 || r.DataTypes < 9 {
			t.Errorf("%s is incomplete: %+v", r.Release, r)
		}
	}
}
