package loads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
)

func TestCheck(t *testing.T) {
	must := func(path string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	bin, ours := must(build.Host()), must(build.Library())
	good := must(build.Plugin("tools/host/testdata/good.c"))
	nccl := func(flags ...string) string {
		return must(build.Plugin("internal/loads/testdata/nccl.c", append(flags, "-ldl")...))
	}
	link := func(name, to string) (dir string) {
		dir = t.TempDir()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	copied := filepath.Join(t.TempDir(), filepath.Base(ours))
	b, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, nccl string
		env        []string
		ok         bool
		release    string
		want       []string
	}{
		{"it uses weft", nccl("-DVERSION=22005"), []string{"LIB=" + ours}, true, "2.20.5", []string{"loads weft and uses it through ncclNetPlugin_v8: "}},
		{"by a link", nccl("-DVERSION=22005"), []string{"LIB=" + filepath.Join(link("libnccl-net.so", ours), "libnccl-net.so")}, true, "2.20.5", []string{"loads weft and uses it"}},
		{"another weft", nccl("-DVERSION=22005"), []string{"LIB=" + copied}, false, "2.20.5", []string{"another one than was expected: " + copied, "weft doctor"}},
		{"its own network", nccl("-DVERSION=2405"), nil, false, "2.4.5", []string{"without weft: it uses its network Socket"}},
		{"another plugin", nccl("-DVERSION=22005"), []string{"LIB=" + good}, false, "2.20.5", []string{"without weft: it uses its network "}},
		{"no GPU, and weft is found", nccl("-DVERSION=22005", "-DFAILS"), []string{"LD_LIBRARY_PATH=" + link("libnccl-net.so", ours)}, true, "2.20.5",
			[]string{"failed: ncclCommInitRank: unhandled cuda error", "dlopen libnccl-net.so: takes ncclNetPlugin_v8", "would load weft and take ncclNetPlugin_v8 of it", "as far as dlopen can tell"}},
		{"no GPU, and a release that is not known", nccl("-DVERSION=29901", "-DFAILS"), []string{"LD_LIBRARY_PATH=" + link("libnccl-net.so", ours)}, true, "2.99.1", []string{"would load weft"}},
		{"no GPU, and nothing is found", nccl("-DVERSION=22005", "-DFAILS"), []string{"LD_LIBRARY_PATH="}, false, "2.20.5", []string{"dlopen libnccl-net.so: ", "would find no plugin"}},
		{"no GPU, and another plugin", nccl("-DVERSION=22005", "-DFAILS"), []string{"LD_LIBRARY_PATH=" + link("libnccl-net.so", good)}, false, "2.20.5", []string{"would load another plugin"}},
		{"it dies", nccl("-DVERSION=22005", "-DDIES"), nil, false, "of a version that it did not come to say", []string{"SIGABRT", "did not come as far"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, e := range append([]string{"NCCL_NET_PLUGIN=", "LD_LIBRARY_PATH=", "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1"}, c.env...) {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			r, err := Check(Options{Host: bin, NCCL: c.nccl, Ours: ours, Wait: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := r.Text(&text); err != nil {
				t.Fatal(err)
			}
			if r.OK != c.ok || r.Release != c.release {
				t.Errorf("ok %t, release %s, want %t, %s", r.OK, r.Release, c.ok, c.release)
			}
			for _, want := range c.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%q is not said", want)
				}
			}
			if t.Failed() {
				t.Logf("\n%s", &text)
			}
		})
	}
	for _, c := range []struct{ nccl, want string }{{"libc.so.6", "it exports no ncclCommInitRank"}, {"/nowhere/libnccl.so.2", "name a libnccl.so.2"}} {
		if _, err := Check(Options{Host: bin, NCCL: c.nccl, Ours: ours, Wait: 20 * time.Second}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.nccl, err, c.want)
		}
	}
}
