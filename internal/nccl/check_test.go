package nccl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/loads"
)

// A real NCCL is proven to load weft, or not to, by what its process has loaded.
func TestCheckOfLoading(t *testing.T) {
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, r Release) {
		t.Setenv("NCCL_SOCKET_IFNAME", "lo")
		t.Setenv("NCCL_CUMEM_ENABLE", "0")
		t.Setenv("NCCL_RAS_ENABLE", "0")
		for _, c := range []struct {
			name, plugin, devices, want string
			ok                          bool
		}{
			{"weft", "weft", "1", "loads weft and uses it through ncclNetPlugin_v", true},
			{"none", "none", "1", "without weft", false},
			{"no GPU", "weft", "0", "", true},
		} {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				for _, name := range []string{"libnccl-net-weft.so", "libnccl-net.so"} { // up to 2.10 the second is the only name
					if c.plugin == "weft" {
						if err := os.Symlink(ours, filepath.Join(dir, name)); err != nil {
							t.Fatal(err)
						}
					}
				}
				t.Setenv("LD_LIBRARY_PATH", r.Dir+":"+dir)
				t.Setenv("NCCL_NET_PLUGIN", c.plugin)
				t.Setenv("SIMGPU_DEVICES", c.devices)
				rep, err := loads.Check(loads.Options{Host: bin, NCCL: filepath.Join(r.Dir, "libnccl.so"), Ours: ours, Wait: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if rep.OK != c.ok || !strings.Contains(rep.Verdict, c.want) || !strings.Contains(rep.Verdict, r.String()) {
					t.Errorf("%+v", rep)
				}
			})
		}
	})
}
