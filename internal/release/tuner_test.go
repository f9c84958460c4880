package release

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"weft/internal/build"
)

// TestTunerNames compares what each range of releases makes of NCCL_TUNER_PLUGIN.
func TestTunerNames(t *testing.T) {
	for _, c := range []struct {
		releases string
		value    *string
		want     []string
		net      bool
	}{
		{"2.18.6 2.19.4 2.20.5", nil, nil, false},
		{"2.21.5 2.24.3 2.26.6 2.27.7 2.30.7", nil, []string{"libnccl-tuner.so"}, true},
		{"2.21.5 2.30.7", str(""), []string{"libnccl-tuner.so"}, true},
		{"2.21.5 2.25.1 2.26.6 2.27.5 2.30.7", str("mine"), []string{"mine", "libnccl-tuner-mine.so"}, true},
		{"2.24.3 2.27.7", str("none"), []string{"none", "libnccl-tuner-none.so"}, true},
		{"2.28.3 2.30.7", str("None"), nil, false},
		{"2.26.6", str("/opt/t.so"), []string{"/opt/t.so", "libnccl-tuner-/opt/t.so.so"}, true},
		{"2.27.7 2.30.7", str("/opt/t.so"), []string{"/opt/t.so"}, true},
	} {
		for _, name := range strings.Fields(c.releases) {
			if got, net := find(t, name).TunerNames(c.value); !reflect.DeepEqual(got, c.want) || net != c.net {
				t.Errorf("%s with %s: %q, %t, want %q, %t", name, value(c.value), got, net, c.want, c.net)
			}
		}
	}
}

// TestTunerInNet requires that from 2.21 on the tuner's table is found in the net
// library, for as many communicators as the release finds it for, and that
// another tuner that the user names takes its place.
func TestTunerInNet(t *testing.T) {
	o := setup(t)
	dir := strings.TrimPrefix(o.Env[0], "LD_LIBRARY_PATH=")
	other, err := build.Plugin("tools/host/testdata/good_tuner.c")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "libnccl-tuner-other.so")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		release string
		value   *string
		want    int    // version of the tuner's table, 0 for none
		name    string // of it
	}{
		{"2.20.5", nil, 0, ""}, {"2.21.5", nil, 2, "weft"}, {"2.22.3", nil, 3, "weft"}, {"2.23.4", nil, 3, "weft"}, {"2.24.3", nil, 4, "weft"},
		{"2.26.6", nil, 4, "weft"}, {"2.27.5", nil, 4, "weft"}, {"2.27.7", nil, 4, "weft"}, {"2.28.9", nil, 5, "weft"}, {"2.30.7", nil, 6, "weft"}, {"2.32.3", nil, 6, "weft"},
		{"2.27.7", str("none"), 4, "weft"}, {"2.28.9", str("none"), 0, ""}, {"2.30.7", str("libm.so.6"), 0, ""},
		{"2.21.5", str("other"), 2, "good"}, {"2.26.6", str("other"), 2, "good"}, {"2.30.7", str("other"), 6, "good"},
	} {
		o.Tuner = c.value
		p, err := Start(find(t, c.release), o)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			comm, err := p.Init(1)
			if err != nil {
				t.Errorf("%v: %v", p.R, err)
				break
			}
			want, got, name := c.want, 0, ""
			if round > 0 && p.R.TunerBorrows() && c.name == "weft" {
				want = 0
			}
			if p.tuner != nil && p.tuner.table != nil {
				got, name = p.tuner.table.Version, p.tuner.table.Name
			}
			if got != want || got != 0 && name != c.name {
				t.Errorf("%v with NCCL_TUNER_PLUGIN %s, communicator %d: tuner %q v%d, want %q v%d (tried %q)", p.R, value(c.value), round, name, got, c.name, want, p.Tried)
			}
			if err := comm.Destroy(); err != nil {
				t.Errorf("%v: %v", p.R, err)
			}
		}
		p.Close()
	}
}
