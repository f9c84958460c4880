package fakeibv

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// Entry makes an entry of a GID table.
func Entry(index int, kind ibv.GIDType, addr string, ifIndex int) ibv.GIDEntry {
	a := netip.MustParseAddr(addr)
	return ibv.GIDEntry{Port: 1, GID: a.As16(), Index: index, Kind: kind, IfIndex: ifIndex}
}

// RoCE is a card with one active RoCE port in 10.0.0.0/24.
func RoCE(name, addr string, ifIndex int) Card {
	return Card{Name: name, GUID: 0xabcd, Ports: []Port{{
		PortAttr: ibv.PortAttr{State: ibv.PortActive, LinkLayer: ibv.LinkEthernet, ActiveMTU: 5, GIDTableLen: 16, MaxMessage: 1 << 30, ActiveWidth: 1, ActiveSpeed: 4},
		GIDs: []ibv.GIDEntry{
			Entry(0, ibv.GIDRoCEv1, "fe80::1", ifIndex), Entry(1, ibv.GIDRoCEv2, "fe80::1", ifIndex),
			Entry(2, ibv.GIDRoCEv1, addr, ifIndex), Entry(3, ibv.GIDRoCEv2, addr, ifIndex),
		},
	}}}
}

// Host is a machine with the links and an empty sysfs.
func Host(t testing.TB, links ...machine.Link) *machine.Machine {
	return &machine.Machine{Root: t.TempDir(), Links: func() ([]machine.Link, error) { return links, nil }}
}

// Eth is the network device eth<index>.
func Eth(index int, up bool, addrs ...string) machine.Link {
	l := machine.Link{Index: index, Name: fmt.Sprintf("eth%d", index), Up: up}
	for _, a := range addrs {
		l.Addrs = append(l.Addrs, netip.MustParsePrefix(a))
	}
	return l
}

// Write makes a file below root, with its folders.
func Write(t testing.TB, text string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// At gives the card a sysfs folder whose device link leads to a PCI function.
func At(t *testing.T, h *machine.Machine, c Card, function string) Card {
	t.Helper()
	c.Sysfs = h.Sys("class/infiniband", c.Name)
	real := h.Sys("devices/pci0000:00", function)
	for _, dir := range []string{c.Sysfs, real} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, filepath.Join(c.Sysfs, "device")); err != nil {
		t.Fatal(err)
	}
	return c
}

// Memfd stands for a DMA-BUF; the caller closes it.
func Memfd(t *testing.T, size int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("buffer", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	return fd
}

// Open opens the first card that the library shows.
func (f *Lib) Open(host *machine.Machine, env map[string]string) (*card.Card, *report.Recorder) {
	f.t.Helper()
	log := new(report.Recorder)
	l := &card.Library{Calls: f.Table(), Name: "a test's library", Knobs: knob.Parse(env), Log: log, Host: host, GDR: host.GDR()}
	list, entries, errno := l.GetDeviceList()
	if errno != 0 {
		f.t.Fatal(errno)
	}
	defer l.FreeDeviceList(list)
	c, err := card.Open(l, &entries[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return c, log
}
