package link

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSymbolsOfBothArchitectures(t *testing.T) {
	amd, err := HostSymbols("amd64")
	if err != nil {
		t.Fatal(err)
	}
	arm, err := HostSymbols("arm64")
	if err != nil {
		t.Fatal(err)
	}
	if len(amd) != len(arm) {
		t.Fatalf("%d symbols for amd64, %d for arm64", len(amd), len(arm))
	}
	seen := map[string]string{}
	for i, s := range amd {
		if before, ok := seen[s.Name]; ok {
			t.Errorf("%s is listed for %s and for %s", s.Name, before, s.Library)
		}
		seen[s.Name] = s.Library
		v, _ := ParseVersion(s.Version)
		w, _ := ParseVersion(arm[i].Version)
		if v.After(w) {
			t.Errorf("%s: %s on amd64 but %s on arm64", s.Name, s.Version, arm[i].Version)
		}
	}
}

// The C library of this machine is the witness that a listed version exists: glibc keeps old versions for ever.
func TestSymbolsExistHere(t *testing.T) {
	list, err := HostSymbols(runtime.GOARCH)
	if err != nil {
		t.Skipf("no list for this machine: %v", err)
	}
	have := map[string]bool{}
	for _, pattern := range []string{"/lib/*-linux-gnu/", "/lib64/", "/usr/lib64/"} {
		for _, name := range hostAllowed {
			files, _ := filepath.Glob(pattern + name)
			for _, file := range files {
				versions(t, file, have)
			}
		}
	}
	if len(have) == 0 {
		t.Skip("no glibc found where Debian and Fedora have it")
	}
	for _, s := range list {
		if !have[s.Name+"@"+s.Version] {
			t.Errorf("glibc.txt or glibc-host.txt lists %s with %s, which this machine's C library does not know", s.Name, s.Version)
		}
	}
}

func versions(t *testing.T, file string, have map[string]bool) {
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			have[s.Name+"@"+s.Version] = true
		}
	}
}

func TestVersionOrder(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		after bool
	}{
		{"GLIBC_2.34", "GLIBC_2.28", true}, {"GLIBC_2.28", "GLIBC_2.28", false}, {"GLIBC_2.2.5", "GLIBC_2.17", false},
		{"GLIBC_2.3.4", "GLIBC_2.3.2", true}, {"GLIBC_3.0", "GLIBC_2.99", true},
	} {
		a, errA := ParseVersion(c.a)
		b, errB := ParseVersion(c.b)
		if errA != nil || errB != nil || a.After(b) != c.after || a.String() != c.a {
			t.Errorf("%s after %s: %v (%v, %v), printed %s", c.a, c.b, a.After(b), errA, errB, a)
		}
	}
	for _, bad := range []string{"", "GLIBC_PRIVATE", "GCC_3.0", "GLIBC_2", "GLIBC_2.x"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q was read as %s", bad, v)
		}
	}
}

// Two little libraries: one that glibc 2.28 can load, one that uses a younger function.
func TestStubsRefuseWhatIsYounger(t *testing.T) {
	dir := t.TempDir()
	list, err := Symbols(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeStubs(dir, compiler(), list); err != nil {
		t.Fatal(err)
	}
	source, out := filepath.Join(dir, "x.c"), filepath.Join(dir, "x.so")
	build := func(text string) error {
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return run(dir, nil, nil, compiler(), "-shared", "-fPIC", "-o", out, source, "-L"+dir, "-static-libgcc", "-Wl,-z,defs",
			"-Wl,-soname,"+Name, "-Wl,--build-id=none", "-Wl,--as-needed", "-lpthread", "-ldl", "-lc", "-l:libc_nonshared.a")
	}
	if err := build("#include <pthread.h>\nint f(void *p) { return pthread_atfork(0, 0, 0) + pthread_join(*(pthread_t *)p, 0); }"); err != nil {
		t.Fatal(err)
	}
	facts, err := Inspect(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), facts.Portable()); diff != "" {
		t.Error(diff)
	}
	err = build("#include <sys/stat.h>\nint f(struct stat *s) { return fstat(0, s); }")
	if err == nil || !strings.Contains(err.Error(), "fstat") {
		t.Errorf("a function of glibc 2.33 linked: %v", err)
	}
}

// The host asks for nothing that glibc 2.28 has not.
func TestHostIsPortable(t *testing.T) {
	if _, err := Symbols(runtime.GOARCH); err != nil {
		t.Skipf("no list for this machine: %v", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "weft-host")
	if err := Host(HostOptions{Root: root, Out: out}); err != nil {
		t.Fatal(err)
	}
	facts, err := Inspect(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range facts.Needed {
		if !slices.Contains(hostAllowed, lib) {
			t.Errorf("needs %s", lib)
		}
	}
	if len(facts.Versions) < 50 {
		t.Errorf("%d symbols", len(facts.Versions))
	}
	for name, version := range facts.Versions {
		if v, err := ParseVersion(version); err != nil || v.After(Newest) {
			t.Errorf("%s asks for %s", name, version)
		}
	}
}

func TestPortableNamesEachFault(t *testing.T) {
	f := Facts{Soname: "libx.so", Needed: []string{"libc.so.6", "libibverbs.so.1"}, Versions: map[string]string{"stat": "GLIBC_2.33", "read": "GLIBC_2.2.5"}, BuildID: true}
	want := []string{
		"carries a build id, which differs between identical builds",
		"needs libibverbs.so.1; only libc.so.6, libpthread.so.0, libdl.so.2, librt.so.1 may be needed",
		`soname is "libx.so", want "libnccl-net-weft.so"`,
		"stat asks for GLIBC_2.33; the newest allowed is GLIBC_2.28",
	}
	if diff := cmp.Diff(want, f.Portable()); diff != "" {
		t.Error(diff)
	}
}

func TestScriptExports(t *testing.T) {
	got := ScriptExports([]byte("{\n global:\n  ncclNetPlugin_v4;\n  ncclCollNetPlugin_v12; ncclProfiler_v1;\n local: *;\n};\n"))
	if diff := cmp.Diff([]string{"ncclCollNetPlugin_v12", "ncclNetPlugin_v4", "ncclProfiler_v1"}, got); diff != "" {
		t.Error(diff)
	}
}
