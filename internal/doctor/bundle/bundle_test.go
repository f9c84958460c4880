package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weft/internal/doctor"
	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
)

func exam(t *testing.T, files fs.FS) *doctor.Exam {
	t.Helper()
	x, err := doctor.Examine(machine.OpenFS(files), 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// unpacked is a bundle's files, links among them.
func unpacked(t *testing.T, b []byte) fstest.MapFS {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		switch h.Typeflag {
		case tar.TypeSymlink:
			if path.IsAbs(h.Linkname) {
				t.Errorf("%s leads out of the bundle, to %s", name, h.Linkname)
			}
			all[name] = &fstest.MapFile{Data: []byte(h.Linkname), Mode: fs.ModeSymlink | 0o777}
		case tar.TypeDir:
			all[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			all[name] = &fstest.MapFile{Data: text, Mode: 0o644}
		}
	}
}

func codes(findings []doctor.Finding) (all []string) {
	for _, f := range findings {
		all = append(all, f.Code)
	}
	return all
}

// A bundle is the same machine to every rule, and holds nothing that is private.
func TestBundle(t *testing.T) {
	for name, private := range map[string][]string{
		"dgx-h100":         {"node7", "192.0.2.17", "00f0:0001"},
		"dgx-spark-broken": {"spark-1", "10.1.0.7", "4cbb:4700:0001:0002"},
		"cloud-vm":         {"ip-192-0-2-17", "192.0.2.17"},
		"container-broken": {"5f2c1a9e7b01", "172.17.0.2", "hf_abcdefghijklmnop", "0a01:0007"},
		"node-broken":      {"node7", "alice", "0123456789abcdef", "10.1.0.7", "0a01:0007"},
	} {
		t.Run(name, func(t *testing.T) {
			x := exam(t, fixture.Machine(t, "../testdata/machines/"+name+".txtar", ""))
			report := doctor.NewReport(x.Host())
			var b bytes.Buffer
			if err := Write(&b, x, report); err != nil {
				t.Fatal(err)
			}
			files := unpacked(t, b.Bytes())
			for file, f := range files {
				for _, word := range private {
					if strings.Contains(file, word) || bytes.Contains(f.Data, []byte(word)) {
						t.Errorf("%s holds %q", file, word)
					}
				}
			}
			for _, file := range []string{About, Text, Report} {
				if files[file] == nil {
					t.Errorf("there is no %s", file)
				}
			}
			below, err := fs.Sub(files, Machine)
			if err != nil {
				t.Fatal(err)
			}
			again := exam(t, below)
			if d := cmp.Diff(codes(report.Hosts[0].Findings), codes(again.Findings())); d != "" {
				t.Errorf("(-machine +bundle):\n%s", d)
			}
		})
	}
}

// The same is replaced by the same; subnets stay subnets, and what an address is for stays.
func TestRedactor(t *testing.T) {
	r, err := newRedactor([]string{"node7", "node70.example.org"}, []string{"alice"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want string }{
		{"host node7, not node71", "host host-1, not node71"},
		{"node70.example.org and node7", "host-2 and host-1"},
		{"/home/alice/.nccl.conf", "/home/user-1/.nccl.conf"},
		{"lo 127.0.0.1/8 ::1/128", "lo 127.0.0.1/8 ::1/128"},
		{"mask 255.255.255.0, any 0.0.0.0", "mask 255.255.255.0, any 0.0.0.0"},
		{"firmware 28.43.2026, driver 550.54.14", "firmware 28.43.2026, driver 550.54.14"},
		{"0000:18:00.0 pci0000:15 at 12:30:45", "0000:18:00.0 pci0000:15 at 12:30:45"},
		{"MT_0000000838 0000:0000:0000:0000", "MT_0000000838 0000:0000:0000:0000"},
		{"http://bob:pw@proxy", "http://user:secret@proxy"},
	} {
		if got := r.text(c.in); got != c.want {
			t.Errorf("%q is %q, want %q", c.in, got, c.want)
		}
	}
	for _, s := range []string{"NCCL_PSK=hunter22", "hf_token = \"hunter22\"", "AWS_SECRET_ACCESS_KEY=hunter22", "x=1 MY_PASSWORD=hunter22"} {
		if got := r.text(s); strings.Contains(got, "hunter22") || got != r.text(s) {
			t.Errorf("%q is %q", s, got)
		}
	}
	for _, s := range []string{"10.1.0.7", "2001:db8::7", "98:03:9b:12:34:56", "506b:4b03:00c5:f1a2", "0000:0000:0000:0000:0000:ffff:0a01:0007", "20010db8000000000000000000000007 03 40 00 80 eth1"} {
		if got := r.text(s); got == s || got != r.text(s) || len(strings.Fields(got)) != len(strings.Fields(s)) {
			t.Errorf("%q is %q", s, got)
		}
	}
	if got := r.text("0000:0000:0000:0000:0000:ffff:0a01:0007"); !strings.HasPrefix(got, "0000:0000:0000:0000:0000:ffff:0a") {
		t.Errorf("a GID of IPv4 is %q", got)
	}
	at := func(s string) netip.Addr { return r.addr(netip.MustParseAddr(s)) }
	subnet := netip.PrefixFrom(at("10.1.0.7"), 24).Masked()
	if !subnet.Contains(at("10.1.0.8")) || subnet.Contains(at("10.1.1.7")) || !netip.PrefixFrom(at("10.1.0.7"), 16).Masked().Contains(at("10.1.1.7")) || !at("10.1.0.7").IsPrivate() {
		t.Errorf("10.1.0.7 is %v, 10.1.0.8 %v, 10.1.1.7 %v", at("10.1.0.7"), at("10.1.0.8"), at("10.1.1.7"))
	}
	if a := at("fe80::1:2:3"); !a.IsLinkLocalUnicast() || a == netip.MustParseAddr("fe80::1:2:3") {
		t.Errorf("fe80::1:2:3 is %v", a)
	}
	route := "eth0\t0000010A\t00000000\t0001\t0\t0\t0\t00FFFFFF"
	if got := r.route(route); got == route || !strings.HasSuffix(got, "00FFFFFF") || !strings.Contains(got, "00000000") {
		t.Errorf("a route is %q", got)
	}
}
