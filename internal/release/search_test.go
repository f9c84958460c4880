package release

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func str(s string) *string { return &s }

// TestNames compares what each range of releases makes of NCCL_NET_PLUGIN.
func TestNames(t *testing.T) {
	plain := [][]string{{"libnccl-net.so"}}
	for _, c := range []struct {
		releases string
		value    *string
		want     [][]string
	}{
		{"2.4.2 2.8.4 2.10.3", str("weft"), plain},
		{"2.4.8 2.11.4 2.20.5 2.26.6 2.30.7", nil, plain},
		{"2.11.4 2.26.2", str(""), plain},
		{"2.27.3 2.30.7", str(""), nil},
		{"2.11.4 2.12.12 2.18.6 2.20.5", str("weft"), [][]string{{"libnccl-net-weft.so"}}},
		{"2.18.6", str("/opt/libnccl-net-weft.so"), [][]string{{"libnccl-net-/opt/libnccl-net-weft.so.so"}}},
		{"2.21.5 2.24.3 2.26.6", str("weft"), [][]string{{"weft", "libnccl-net-weft.so"}}},
		{"2.21.5 2.27.3 2.27.7", str("none"), nil},
		{"2.28.3 2.29.7 2.30.7", str("None"), nil},
		{"2.27.3", str("weft,libnccl-net-weft.so,/opt/x.so"), [][]string{{"libnccl-net-weft.so"}, {"libnccl-net-weft.so"}, {"libnccl-net-/opt/x.so.so"}}},
		{"2.27.5 2.30.7", str("weft,libnccl-net-weft.so,/opt/x.so"), [][]string{{"weft", "libnccl-net-weft.so"}, {"libnccl-net-weft.so"}, {"/opt/x.so"}}},
	} {
		for _, name := range strings.Fields(c.releases) {
			r := find(t, name)
			want := c.want
			if c.value != nil && *c.value == "none" { // a name like any other before 2.28
				want = [][]string{{"none", "libnccl-net-none.so"}}
				if r.Code == 22703 {
					want = [][]string{{"libnccl-net-none.so"}}
				}
			}
			if got := r.NetNames(c.value); !reflect.DeepEqual(got, want) {
				t.Errorf("%v: got %q, want %q", r, got, want)
			}
		}
	}
	long := strings.Repeat("x", 255)
	if got := find(t, "2.30.7").NetNames(&long); got != nil {
		t.Errorf("a name of 255 characters is tried: %q", got)
	}
	many := strings.Repeat("a,", 20)
	if got := find(t, "2.30.7").NetNames(&many); len(got) != 14 {
		t.Errorf("%d plugins of a list are tried, want 14", len(got))
	}
}

// RCCL has names of its own, but for the profiler from the base 2.29.7 on.
func TestNamesOfRCCL(t *testing.T) {
	for release, want := range map[string]string{"2.28.3": "librccl", "2.29.7": "libnccl", "2.30.7": "libnccl", "2.31.2": "libnccl"} {
		r := find(t, release).AMD()
		if got := r.ProfilerNames(nil); !reflect.DeepEqual(got, []string{want + "-profiler.so"}) {
			t.Errorf("%v: %q", r, got)
		}
		if got := r.NetNames(nil); !reflect.DeepEqual(got, [][]string{{"librccl-net.so"}}) {
			t.Errorf("%v: %q", r, got)
		}
	}
}

// TestSearch looks for the installed library as users of each range name it.
func TestSearch(t *testing.T) {
	o := setup(t)
	dir := strings.TrimPrefix(o.Env[0], "LD_LIBRARY_PATH=")
	path := filepath.Join(dir, "libnccl-net-weft.so")
	for _, c := range []struct {
		value    *string
		from, to int // releases that find it
	}{
		{nil, 20402, 99999},
		{str("weft"), 20402, 99999},
		{str("libnccl-net-weft.so"), 22100, 99999},
		{&path, 22100, 99999},
		{str("other"), 0, 0},
		{str("other,weft"), 22703, 99999},
	} {
		for _, name := range full {
			r := find(t, name)
			want := r.Code >= c.from && r.Code <= c.to || r.Code < 21100
			if found := search(t, r, o, c.value); found != want {
				t.Errorf("%v with NCCL_NET_PLUGIN %v: found %v, want %v", r, value(c.value), found, want)
			}
		}
	}
	if search(t, find(t, "2.27.3"), o, &path) {
		t.Error("2.27.3 opens a path, which it cannot")
	}
}

func value(s *string) string {
	if s == nil {
		return "unset"
	}
	return *s
}

func search(t *testing.T, r *Release, o Options, v *string) bool {
	t.Helper()
	o.NetPlugin = v
	p, err := Start(r, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	switch _, err := p.Init(1); {
	case errors.Is(err, ErrInternal):
		return false
	case err != nil:
		t.Errorf("%v: %v (tried %q)", r, err, p.Tried)
	}
	return true
}

// TestNameFilter has NCCL_NET choose, and refuse, the plugin by its name.
func TestNameFilter(t *testing.T) {
	o := setup(t)
	for net, want := range map[string]bool{"weft": true, "WEFT": true, "Socket": false} {
		o.NetName = net
		if found := search(t, find(t, "2.30.7"), o, o.NetPlugin); found != want {
			t.Errorf("NCCL_NET=%s: found %v, want %v", net, found, want)
		}
	}
}

// TestNoDevice has init fail under every release: each goes on without the plugin,
// also the second time, and nothing dies of finalize with no context.
func TestNoDevice(t *testing.T) {
	o := setup(t)
	o.Env = append(o.Env, "NCCL_SOCKET_IFNAME==nosuchinterface0")
	for _, name := range append([]string{"2.11.4", "2.24.3", "2.29.3"}, full...) {
		p, err := Start(find(t, name), o)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c, err := p.Init(1)
			if !errors.Is(err, ErrInternal) {
				t.Fatalf("%v: %v, want that NCCL's own networks are used", p.R, err)
			}
			if err := c.Destroy(); err != nil {
				t.Errorf("%v: %v", p.R, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Errorf("%v: %v", p.R, err)
		}
	}
}

// TestNextCommunicator ends the only communicator and starts another, with the
// library installed under one name: releases that forget the plugin's name when
// they unload it find only libnccl-net.so then.
func TestNextCommunicator(t *testing.T) {
	o := setup(t)
	lib := filepath.Join(strings.TrimPrefix(o.Env[0], "LD_LIBRARY_PATH="), "libnccl-net-weft.so")
	for _, c := range []struct {
		installed string
		releases  string
		found     bool
	}{
		{"libnccl-net-weft.so", "2.22.3 2.24.3 2.26.6 2.27.7 2.30.7", true},
		{"libnccl-net-weft.so", "2.28.3 2.28.7 2.28.9 2.29.7", false},
		{"libnccl-net-weft.so libnccl-net.so", "2.28.3 2.28.9 2.29.7 2.30.7", true},
	} {
		dir := t.TempDir()
		for _, name := range strings.Fields(c.installed) {
			if err := os.Symlink(lib, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		o.Env = []string{"LD_LIBRARY_PATH=" + dir}
		for _, name := range strings.Fields(c.releases) {
			p, err := Start(find(t, name), o)
			if err != nil {
				t.Fatal(err)
			}
			first, err := p.Init(1)
			if err == nil {
				err = first.Destroy()
			}
			if err != nil {
				t.Fatalf("%v: %v (tried %q)", p.R, err, p.Tried)
			}
			next, err := p.Init(2)
			if found := err == nil; found != c.found || !found && !errors.Is(err, ErrInternal) {
				t.Errorf("%v with %s: the next communicator: %v, want it found: %v (tried %q)", p.R, c.installed, err, c.found, p.Tried)
			} else if err := next.Destroy(); err != nil {
				t.Errorf("%v: %v", p.R, err)
			}
			if err := p.Close(); err != nil {
				t.Errorf("%v: %v", p.R, err)
			}
		}
	}
}

// TestProfilerInNet requires that from 2.28 on the profiler's table is found in the
// net library when no profiler library is there, and by its own name before.
func TestProfilerInNet(t *testing.T) {
	o := setup(t)
	dir := strings.TrimPrefix(o.Env[0], "LD_LIBRARY_PATH=")
	path := filepath.Join(dir, "libnccl-profiler-weft.so")
	for _, c := range []struct {
		release string
		value   *string
		want    int // version of the profiler's table, 0 for none
	}{
		{"2.22.3", str("weft"), 0}, {"2.23.4", nil, 0}, {"2.23.4", str("weft"), 0}, {"2.23.4", &path, 1},
		{"2.26.6", str("weft"), 3}, {"2.27.3", str("weft"), 4}, {"2.28.9", nil, 5}, {"2.28.9", str("none"), 0}, {"2.30.7", nil, 6}, {"2.30.7", str("weft"), 6}, {"2.31.2", nil, 7}, {"2.32.3", str("weft"), 7},
	} {
		o.Profiler = c.value
		p, err := Start(find(t, c.release), o)
		if err != nil {
			t.Fatal(err)
		}
		comm, err := p.Init(1)
		if err != nil {
			t.Errorf("%v: %v", p.R, err)
			continue
		}
		got := 0
		if p.prof != nil && p.prof.table != nil {
			got = p.prof.table.Version
		}
		if got != c.want {
			t.Errorf("%v with NCCL_PROFILER_PLUGIN %s: profiler v%d, want v%d (tried %q)", p.R, value(c.value), got, c.want, p.Tried)
		}
		if err := comm.Destroy(); err != nil {
			t.Errorf("%v: %v", p.R, err)
		}
		p.Close()
	}
}
