package machine

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// of is a copy of a machine with these files; a text that begins with -> is a symbolic link.
func of(t *testing.T, files map[string]string) *Machine {
	t.Helper()
	all := fstest.MapFS{}
	for name, text := range files {
		if len(text) > 3 && text[:3] == "-> " {
			all[name] = &fstest.MapFile{Data: []byte(text[3:]), Mode: fs.ModeSymlink}
		} else {
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	m := OpenFS(all)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	return m
}

// NCCL_CONF_FILE is known from 2.23 on, and then stands in for the user's own file.
func TestSettings(t *testing.T) {
	m := of(t, map[string]string{
		"proc/self/environ": "HOME=/home/u\x00NCCL_CONF_FILE=/job.conf\x00A=of the environment\x00A=twice\x00",
		"home/u/.nccl.conf": "A=user's\nB=user's\nC=user's\n", "job.conf": "B=job's\n", "etc/nccl.conf": "B=all\nC=all\nD=all\n",
	})
	for _, c := range []struct {
		name        string
		old, recent string
	}{{"A", "of the environment", "of the environment"}, {"B", "user's", "job's"}, {"C", "user's", "all"}, {"D", "all", "all"}, {"E", "", ""}} {
		if old, recent := m.Setting(c.name, 22203).Value, m.Setting(c.name, 22304).Value; old != c.old || recent != c.recent {
			t.Errorf("%s is %q in 2.22 and %q in 2.23, want %q and %q", c.name, old, recent, c.old, c.recent)
		}
	}
}

func TestResolve(t *testing.T) {
	m := of(t, map[string]string{"a/b/f": "", "c/abs": "-> /a/b", "c/up": "-> ../../../a", "loop": "-> loop"})
	for name, want := range map[string]string{"/c/abs": "/a/b", "/c/up/b": "/a/b", "/loop": "", "/none": ""} {
		if got, err := m.resolve(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

// A copy that nobody made with weft tells addresses by proc alone.
func TestAddressesOfProc(t *testing.T) {
	m := of(t, map[string]string{
		"proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
			"eth1\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n",
		"proc/net/fib_trie": "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.0.7\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n" +
			"     |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n        /32 link BROADCAST\nLocal:\n     |-- 192.0.2.2\n        /32 host LOCAL\n",
		"proc/net/if_inet6": "20010db8000000000000000000000007 03 40 00 80     eth1\nnonsense\n",
	})
	want := []string{"eth1 10.1.0.7/16", "lo 127.0.0.1/8", "eth0 192.0.2.2/24", "eth1 2001:db8::7/64"}
	got := m.Addresses()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, a := range got {
		if s := a.Dev + " " + a.Prefix.String(); s != want[i] {
			t.Errorf("%q, want %q", s, want[i])
		}
	}
}

// This machine can be read, whatever it is: a copy of what was looked at has the same devices.
func TestThisMachine(t *testing.T) {
	m, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if !m.Live() || len(m.NICs()) == 0 || m.NIC("lo") == nil || m.NIC("nobody") != nil {
		t.Errorf("network devices %v, live %v", m.NICs(), m.Live())
	}
	if _, _, known := m.Limit("Max open files"); !known {
		t.Error("no limit of files")
	}
	copied := map[string]string{}
	for _, e := range m.Evidence() {
		switch {
		case e.Link != "":
			copied[on(e.Name)] = "-> " + e.Link
		case !e.Dir:
			copied[on(e.Name)] = string(e.Text)
		}
	}
	again := of(t, copied)
	if len(again.NICs()) != len(m.NICs()) || len(again.Addresses()) != len(m.Addresses()) || len(again.Functions()) != len(m.Functions()) {
		t.Errorf("a copy has %d network devices, %d addresses and %d functions, want %d, %d, %d", len(again.NICs()), len(again.Addresses()), len(again.Functions()),
			len(m.NICs()), len(m.Addresses()), len(m.Functions()))
	}
}

func TestCPUs(t *testing.T) {
	for list, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-3,8,10-11": 7, "x": 0, "3-1": 0} {
		if got := CPUs(list); got != want {
			t.Errorf("%q are %d, want %d", list, got, want)
		}
	}
}

// A chain of capabilities that leads nowhere, or in a circle, ends.
func FuzzACS(f *testing.F) {
	f.Add(make([]byte, 4096))
	f.Add(onlyACS(0x1d, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		control, at := findACS(b)
		if at == 0 && control != 0 || at > len(b) {
			t.Errorf("control %#x at %d", control, at)
		}
	})
}

func FuzzGID(f *testing.F) {
	f.Add("fe80:0000:0000:0000:0000:0000:0000:0001")
	f.Fuzz(func(t *testing.T, text string) {
		if a, ok := parseGID(text); ok && (!a.IsValid() || a.IsUnspecified()) {
			t.Errorf("%q is %v", text, a)
		}
	})
}
