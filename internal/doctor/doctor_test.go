package doctor

import (
	"encoding/binary"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/link"
)

// The libraries and programs of the fixtures, in which a file of this one word stands for each.
var stands = map[string]struct {
	source string
	flags  []string
}{
	"weft":    {"int ncclNetPlugin_v12, ncclNetPlugin_v11, ncclNetPlugin_v8, ncclNetPlugin_v6, ncclNetPlugin_v5, ncclNetPlugin_v4, ncclNetPlugin_v3, ncclNetPlugin_v2, ncclProfiler_v6, ncclProfiler_v1;", []string{"-shared", "-fPIC", "-Wl,-soname," + link.Name}},
	"other":   {"int ncclNetPlugin_v12, ncclNetPlugin_v8, ncclNetPlugin_v6, ncclNetPlugin_v4, ncclNetPlugin_v3, ncclNetPlugin_v2;", []string{"-shared", "-fPIC", "-Wl,-soname,libnccl-net-ofi.so"}},
	"nothing": {"int nothing;", []string{"-shared", "-fPIC"}},
	"program": {"void _start(void) {}", []string{"-pie", "-fPIE"}},
}

// compiled makes what stands for a word.
func compiled(t *testing.T, word string) []byte {
	t.Helper()
	if word == "foreign" { // a library for another machine: the head is all that is looked at
		head := compiled(t, "weft")
		binary.NativeEndian.PutUint16(head[18:], 22) // EM_S390
		return head
	}
	s, ok := stands[word]
	if !ok {
		t.Fatalf("%q stands for nothing", word)
	}
	out := filepath.Join(t.TempDir(), word)
	cmd := exec.Command("gcc", append(s.flags, "-nostdlib", "-x", "c", "-", "-o", out)...)
	cmd.Stdin = strings.NewReader(s.source)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine copies a fixture, with libraries and programs for the words that stand for them.
func machine(t *testing.T, fixture string) *Machine {
	t.Helper()
	root := t.TempDir()
	err := filepath.WalkDir(fixture, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(fixture, p)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			return os.Symlink(target, to)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if word := strings.TrimSpace(string(b)); strings.Contains(rel, ".so") || word == "program" {
			b = compiled(t, word)
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each rule finds what is wrong with its broken machine, and nothing else is; its healthy one is well.
func TestRules(t *testing.T) {
	for _, r := range Rules() {
		t.Run(r.ID, func(t *testing.T) {
			found := machine(t, filepath.Join("testdata", r.ID, "broken")).Examine()
			if len(found) == 0 {
				t.Error("the broken machine is well")
			}
			for _, f := range found {
				if f.Rule != r.ID {
					t.Errorf("%s finds something, too: %+v", f.Rule, f)
				}
				if f.What == "" || f.Evidence == "" || f.Consequence == "" || f.Remedy == "" {
					t.Errorf("a finding that leaves something out: %+v", f)
				}
			}
			for _, f := range machine(t, filepath.Join("testdata", r.ID, "healthy")).Examine() {
				t.Errorf("the healthy machine: %+v", f)
			}
		})
	}
	known := map[string]bool{}
	for _, r := range Rules() {
		known[r.ID] = true
	}
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.Name() != "fuzz" && !known[d.Name()] {
			t.Errorf("testdata/%s belongs to no rule", d.Name())
		}
	}
}

// What a finding names, where it matters.
func TestFindings(t *testing.T) {
	for rule, words := range map[string][]string{
		"plugin.none":    {"NCCL_NET_PLUGIN=None", "/root/.nccl.conf, line 3", "sed -i 3d /root/.nccl.conf"},
		"plugin.missing": {"NCCL_NET_PLUGIN=weft (the environment)", "weft and libnccl-net-weft.so not in LD_LIBRARY_PATH (/opt/else)", "export LD_LIBRARY_PATH"},
		"plugin.other":   {"/opt/aws/lib/libnccl-net.so", "/opt/weft/lib/libnccl-net-weft.so", "ln -sf"},
		"plugin.link":    {"2.28 and 2.29", "without a word", "ln -s libnccl-net-weft.so /opt/weft/lib/libnccl-net.so", "ln -s librccl-net-weft.so /opt/weft/lib/librccl-net.so"},
		"plugin.broken":  {"/opt/weft/bin/weft", "it is a program", "out of LD_LIBRARY_PATH"},
		"net.name":       {"NCCL_NET=Socket", "/etc/nccl.conf, line 1"},
		"conf.path":      {"/job/nccl.conf, line 2", "export LD_LIBRARY_PATH=/opt/weft/lib"},
		"conf.line":      {"line 2", `"export NCCL_SOCKET_IFNAME "`, "NCCL_SOCKET_IFNAME=eth0"},
	} {
		var said strings.Builder
		for _, f := range machine(t, filepath.Join("testdata", rule, "broken")).Examine() {
			said.WriteString(f.What + "\n" + f.Evidence + "\n" + f.Consequence + "\n" + f.Remedy + "\n")
		}
		for _, w := range words {
			if !strings.Contains(said.String(), w) {
				t.Errorf("%s does not say %q:\n%s", rule, w, said.String())
			}
		}
	}
}

// The rows say what each release asks for and finds, and which find nothing for the next communicator.
func TestRows(t *testing.T) {
	var said []string
	for _, r := range machine(t, "testdata/plugin.link/broken").Rows() {
		said = append(said, r.Releases+": "+r.Net+" | "+r.Next+" | "+r.Profiler)
	}
	const weft = "/opt/weft/lib/libnccl-net-weft.so (weft)"
	for _, want := range []string{
		"NCCL 2.4.2 to 2.10.3: asks for libnccl-net.so: NCCL's own networks |  | ",
		"to 2.20.5: asks for libnccl-net-weft.so: " + weft,
		"asks for weft, libnccl-net-weft.so: " + weft + " | asks for libnccl-net.so: NCCL's own networks, without a word | asks for libnccl-profiler.so: " + weft,
		"RCCL on 2.4.2 to 2.10.3: asks for librccl-net.so: NCCL's own networks |  | ",
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

// NCCL_CONF_FILE is known from 2.23 on, and then stands in for the user's own file.
func TestSettings(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/self/environ": "HOME=/home/u\x00NCCL_CONF_FILE=/job.conf\x00A=of the environment\x00A=twice\x00",
		"home/u/.nccl.conf": "A=user's\nB=user's\nC=user's\n", "job.conf": "B=job's\n", "etc/nccl.conf": "B=all\nC=all\nD=all\n",
	} {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		old, recent string
	}{{"A", "of the environment", "of the environment"}, {"B", "user's", "job's"}, {"C", "user's", "all"}, {"D", "all", "all"}, {"E", "", ""}} {
		if old, recent := m.setting(c.name, 22203).value, m.setting(c.name, 22304).value; old != c.old || recent != c.recent {
			t.Errorf("%s is %q in 2.22 and %q in 2.23, want %q and %q", c.name, old, recent, c.old, c.recent)
		}
	}
}

func TestResolve(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"c/abs": "/a/b", "c/up": "../../../a", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	m := &Machine{root: root}
	for name, want := range map[string]string{"/c/abs": "/a/b", "/c/up/b": "/a/b", "/loop": "", "/none": ""} {
		if got, err := m.resolve(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}
