package tcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/tcp/ifname"
)

// machine builds a Host from lines "name[!] addr...": ! is a link that is
// down, "@" alone a link without address. IPv4 comes first, as in the kernel.
func machine(lines ...string) *Host {
	h := &Host{Sysfs: "/nonexistent"}
	var v6 []ifname.Address
	for i, line := range lines {
		f := strings.Fields(line)
		name, down := strings.CutSuffix(f[0], "!")
		h.Interfaces = append(h.Interfaces, ifname.Interface{Index: i + 1, Name: name, MTU: 1500, Running: !down})
		for _, a := range f[1:] {
			p := netip.MustParsePrefix(a)
			if p.Addr().Is4() {
				h.Addresses = append(h.Addresses, ifname.Address{IfIndex: i + 1, Prefix: p})
			} else {
				v6 = append(v6, ifname.Address{IfIndex: i + 1, Prefix: p})
			}
		}
	}
	h.Addresses = append(h.Addresses, v6...)
	return h
}

var office = []string{
	"lo 127.0.0.1/8 ::1/128",
	"docker0 172.17.0.1/16",
	"eth0 10.0.0.5/24 fe80::5/64 2001:db8::5/64",
	"eth1 10.0.1.5/24 10.0.2.5/24",
	"eth10 10.0.3.5/24",
	"wan0! 10.9.0.5/24",
	"six0 fd00::6/64",
	"bare0",
}

func TestChoice(t *testing.T) {
	ib := append([]string{"ib0 10.5.0.1/24", "ibs1 10.6.0.1/24"}, office...)
	for _, c := range []struct {
		name  string
		host  []string
		env   map[string]string
		names string
		first string // address of device 0
	}{
		{"default", office, nil, "eth0 eth1 eth10 six0", "10.0.0.5"},
		{"ib first", ib, nil, "ib0 ibs1", "10.5.0.1"},
		{"prefix", office, map[string]string{"NCCL_SOCKET_IFNAME": "eth1"}, "eth1 eth10", "10.0.1.5"},
		{"exact", office, map[string]string{"NCCL_SOCKET_IFNAME": "=eth1"}, "eth1", "10.0.1.5"},
		{"two", office, map[string]string{"NCCL_SOCKET_IFNAME": "six,eth0"}, "eth0 six0", "10.0.0.5"},
		{"not", office, map[string]string{"NCCL_SOCKET_IFNAME": "^eth,lo"}, "docker0 six0", "172.17.0.1"},
		{"not exact", office, map[string]string{"NCCL_SOCKET_IFNAME": "^=eth1,lo,docker0,six0"}, "eth0 eth10", "10.0.0.5"},
		{"port is read over", office, map[string]string{"NCCL_SOCKET_IFNAME": "=eth1:1:2:3,:4,,eth0:"}, "eth0 eth1", "10.0.0.5"},
		{"= alone takes all", office, map[string]string{"NCCL_SOCKET_IFNAME": "=,"}, "lo docker0 eth0 eth1 eth10 six0", "127.0.0.1"},
		{"one character is unset", office, map[string]string{"NCCL_SOCKET_IFNAME": "e"}, "eth0 eth1 eth10 six0", "10.0.0.5"},
		{"family 6", office, map[string]string{"NCCL_SOCKET_FAMILY": "AF_INET6"}, "eth0 six0", "2001:db8::5"},
		{"family 4", office, map[string]string{"NCCL_SOCKET_FAMILY": "AF_INET"}, "eth0 eth1 eth10", "10.0.0.5"},
		{"loopback chosen", office, map[string]string{"NCCL_SOCKET_IFNAME": "lo"}, "lo", "127.0.0.1"},
		{"comm id", office, map[string]string{"NCCL_COMM_ID": "10.0.2.77:4000"}, "eth1", "10.0.2.5"},
		{"comm id 6", office, map[string]string{"NCCL_COMM_ID": "[2001:db8::77]:4000"}, "eth0", "2001:db8::5"},
		{"comm id link", office, map[string]string{"NCCL_COMM_ID": "[fe80::77%eth0]:4000"}, "eth0", "fe80::5"},
		{"comm id elsewhere", office, map[string]string{"NCCL_COMM_ID": "192.0.2.1:4000"}, "eth0 eth1 eth10 six0", "10.0.0.5"},
		{"comm id name", office, map[string]string{"NCCL_COMM_ID": "head:4000"}, "eth10", "10.0.3.5"},
		{"comm id after ib", ib, map[string]string{"NCCL_COMM_ID": "10.0.2.77:4000"}, "ib0 ibs1", "10.5.0.1"},
		{"ifname beats comm id", office, map[string]string{"NCCL_COMM_ID": "10.0.2.77:4000", "NCCL_SOCKET_IFNAME": "eth0"}, "eth0", "10.0.0.5"},
		{"docker next", office[:2], nil, "docker0", "172.17.0.1"},
		{"lo next", append([]string{"virbr0 192.168.1.1/24"}, office[0]), nil, "lo", "127.0.0.1"},
		{"virbr last", []string{"virbr0 192.168.1.1/24"}, nil, "virbr0", "192.168.1.1"},
		{"only link-local", []string{"eth0 fe80::1/64"}, nil, "eth0", "fe80::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := machine(c.host...)
			h.Resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
				if name != "head" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr("10.0.3.1")}, nil
			}
			log := new(report.Recorder)
			got, err := h.Devices(knob.Parse(c.env), log)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i, d := range got {
				names = append(names, d.Name)
				if d.Index != i || d.GUID != uint64(i) {
					t.Errorf("%s: index %d, guid %d at %d", d.Name, d.Index, d.GUID, i)
				}
			}
			if have := strings.Join(names, " "); have != c.names {
				t.Errorf("devices %s, want %s", have, c.names)
			}
			if have := got[0].Addrs[0].Addr().String(); have != c.first {
				t.Errorf("first address %s, want %s", have, c.first)
			}
			for i, d := range got {
				if log.Count("INFO INIT interface", fmt.Sprintf("interface %d is %s: TCP", i, d.Name), "10000 Mb/s", "MTU 1500", d.Addrs[0].String(), "without PCI", "memory host: sockets copy") != 1 {
					t.Errorf("no line of %s: %q", d.Name, log.Lines())
				}
			}
			if log.Count("INFO INIT", "using [0]"+got[0].Name) != 1 || log.Count("WARN") != 0 {
				t.Errorf("log %q", log.Lines())
			}
		})
	}
}

func TestNothingToChoose(t *testing.T) {
	for _, c := range []struct {
		name  string
		host  []string
		env   map[string]string
		cause report.Cause
		parts []string
	}{
		{"no match", office, map[string]string{"NCCL_SOCKET_IFNAME": "enp"}, report.Usage,
			[]string{"NCCL_SOCKET_IFNAME=enp", "eth0, eth1", "wan0 (down)", "bare0 (no address)", "unset"}},
		{"^= takes nothing", office, map[string]string{"NCCL_SOCKET_IFNAME": "^="}, report.Usage, []string{"NCCL_SOCKET_IFNAME=^="}},
		{"family", []string{"eth0 10.0.0.1/8"}, map[string]string{"NCCL_SOCKET_FAMILY": "AF_INET6"}, report.Usage,
			[]string{"NCCL_SOCKET_FAMILY=AF_INET6", "eth0 (no AF_INET6 address)"}},
		{"down", []string{"eth0! 10.0.0.1/8"}, nil, report.Host, []string{"eth0 (down)", "bring an interface up"}},
		{"empty", nil, nil, report.Host, []string{"has no interface"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := machine(c.host...).Devices(knob.Parse(c.env), report.Discard{})
			if err == nil || got != nil {
				t.Fatalf("devices %v, error %v", got, err)
			}
			if report.CauseOf(err) != c.cause {
				t.Errorf("cause %v, want %v", report.CauseOf(err), c.cause)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%q lacks %q", err, p)
				}
			}
		})
	}
}

func TestALongListIsCut(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("veth%08x! 10.0.%d.1/24", i, i))
	}
	_, err := machine(lines...).Devices(knob.Defaults(), report.Discard{})
	if err == nil || len(err.Error()) > 900 || !strings.Contains(err.Error(), "and 84 more; bring an interface up") {
		t.Errorf("%v", err)
	}
}

func TestCommIDThatCannotBeReadOnlyWarns(t *testing.T) {
	for _, id := range []string{"[2001:db8::1", "[zz]:1", "nowhere:1", "::"} {
		h, log := machine(office...), new(report.Recorder)
		h.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
		if _, err := h.Devices(knob.Parse(map[string]string{"NCCL_COMM_ID": id}), log); err != nil {
			t.Error(err)
		}
		if log.Count("WARN NCCL_COMM_ID="+id) != 1 {
			t.Errorf("%s: log %q", id, log.Lines())
		}
	}
}

func TestAtMostSixteen(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, "eth"+string(rune('a'+i%26))+strings.Repeat("x", i/26)+" 10.0."+string(rune('0'+i%10))+".1/24")
	}
	got, err := machine(lines...).Devices(knob.Defaults(), report.Discard{})
	if err != nil || len(got) != 16 {
		t.Fatalf("%d devices, error %v", len(got), err)
	}
}

func TestPropertiesFromSysfs(t *testing.T) {
	root := t.TempDir()
	file := func(path, text string) {
		t.Helper()
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		t.Helper()
		full := filepath.Join(root, "class/net", name, "device")
		if err := os.Symlink(filepath.Join(root, target), full); err != nil {
			t.Fatal(err)
		}
	}
	pci, virtio := "devices/pci0000:00/0000:00:1f.6", "devices/pci0000:00/0000:00:03.0/virtio2"
	file("class/net/eth0/speed", "25000\n")
	file(pci+"/vendor", "0x8086\n")
	link("eth0", pci)
	file("class/net/eth1/speed", "-1\n")
	file(virtio+"/vendor", "0x1d0f\n")
	link("eth1", virtio)
	file("class/net/br0/speed", "")
	h := machine("eth0 10.0.0.1/24", "eth1 10.0.1.1/24 fe80::1/64", "br0 10.0.2.1/24")
	h.Sysfs = root
	got, err := h.Devices(knob.Defaults(), report.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	base := rdma.Device{MaxComms: 65536, MaxRecvs: 8, Pointers: rdma.MemHost, MTU: 1500, RailID: -1, PlaneID: -1}
	with := func(i int, name, path string, mbps int, addrs ...string) rdma.Device {
		d := base
		d.Index, d.GUID, d.Name, d.PCIPath, d.SpeedMbps, d.IfIndex = i, uint64(i), name, path, mbps, i+1
		for _, a := range addrs {
			d.Addrs = append(d.Addrs, netip.MustParsePrefix(a))
		}
		return d
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Device{
		{Device: with(0, "eth0", filepath.Join(real, pci), 25000, "10.0.0.1/24"), Streams: 1, SpeedRead: true},
		{Device: with(1, "eth1", filepath.Dir(filepath.Join(real, virtio)), 10000, "10.0.1.1/24", "fe80::1/64"), Streams: 16},
		{Device: with(2, "br0", "", 10000, "10.0.2.1/24"), Streams: 1},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); d != "" {
		t.Errorf("devices (-want +got):\n%s", d)
	}
}

func TestStreamCounts(t *testing.T) {
	for _, c := range []struct {
		threads, per, vendor string
		want, warnings       int
	}{
		{"", "", "", 1, 0}, {"", "", "0x1d0f", 16, 0}, {"", "", "0x1ae0", 4, 0}, {"", "", "0x15b3", 1, 0},
		{"4", "", "", 4, 0}, {"4", "2", "", 8, 0}, {"0", "4", "", 1, 0}, {"", "4", "", 1, 0}, {"", "4", "0x1ae0", 16, 0},
		{"16", "64", "", 64, 1}, {"5", "20", "", 60, 1}, {"10", "10", "", 60, 1}, {"17", "1", "", 16, 1}, {"33", "10", "", 64, 2}, {"33", "2147483647", "", 64, 2}, {"1", "100", "", 64, 1},
	} {
		log := new(report.Recorder)
		k := knob.Parse(map[string]string{"NCCL_SOCKET_NTHREADS": c.threads, "NCCL_NSOCKS_PERTHREAD": c.per})
		threads, per := streamCounts(k, c.vendor)
		if got := cutStreams(threads, per, "eth0", true, log); got != c.want || log.Count("WARN") != c.warnings {
			t.Errorf("%+v: %d streams, log %q", c, got, log.Lines())
		}
	}
}

func TestThisHost(t *testing.T) {
	h, err := ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range h.Addresses {
		if !slices.ContainsFunc(h.Interfaces, func(l ifname.Interface) bool { return l.Index == a.IfIndex }) {
			t.Errorf("address %v belongs to no interface", a)
		}
		if a.Prefix.Addr().Zone() != "" || a.Prefix.Addr().Is4In6() {
			t.Errorf("address %v is not plain", a)
		}
	}
	if got, err := h.Devices(knob.Parse(map[string]string{"NCCL_SOCKET_IFNAME": "lo"}), report.Discard{}); err != nil || got[0].Name != "lo" || got[0].PCIPath != "" {
		t.Errorf("lo: %v, %v", got, err)
	}
}
