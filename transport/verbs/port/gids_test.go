package port

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

// Libraries before 1.11 tell GIDs one by one, and sysfs the rest.
func TestGIDsOfAnOldLibrary(t *testing.T) {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/22"), fakeibv.Eth(2, false, "10.0.9.1/24"))
	card := fakeibv.RoCE("a", "10.0.0.1", 1)
	card.Sysfs = h.Sys("class/infiniband/a")
	card.Ports[0].GIDs = append(card.Ports[0].GIDs, fakeibv.Entry(4, ibv.GIDRoCEv2, "10.0.9.1", 2), fakeibv.Entry(5, ibv.GIDRoCEv2, "10.0.7.1", 1))
	attrs := filepath.Join(card.Sysfs, "ports", "1", "gid_attrs")
	for i, kind := range []string{"IB/RoCE v1", "RoCE v2", "IB/RoCE v1", "RoCE v2", "RoCE v2"} { // 5 cannot be read
		fakeibv.Write(t, kind+"\n", attrs, "types", string(rune('0'+i)))
		fakeibv.Write(t, map[bool]string{true: "eth2\n", false: "eth1\n"}[i == 4], attrs, "ndevs", string(rune('0'+i)))
	}
	f := fakeibv.New(t, card)
	f.Lacking = []string{"ibv_query_gid_table"}
	d, _ := used(t, f, h, nil)
	var got []string
	for _, g := range d.GIDs() {
		got = append(got, g.String()+" "+gid.PrefixOf(g).Masked().String())
	}
	want := []string{
		"10.0.0.1 (index 3, RoCE v2, eth1) 10.0.0.0/22", "10.0.0.1 (index 2, RoCE v1, eth1) 10.0.0.0/22",
		"fe80::1 (index 1, RoCE v2, eth1) fe80::/64", "fe80::1 (index 0, RoCE v1, eth1) fe80::/64",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Addresses that were asked for earlier do not replace those asked for later.
func TestAddressesAskedForTwiceAtOnce(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	d, _ := used(t, f, lan(t), nil)
	was := d.GIDs()[0]
	later := false
	table := d.card.Lib.QueryGIDTable
	d.card.Lib.QueryGIDTable = func(o ibv.Object, most int) ([]ibv.GIDEntry, syscall.Errno) {
		all, errno := table(o, most)
		if !later {
			later = true
			f.Lock()
			f.Cards[0].Ports[0].GIDs = fakeibv.RoCE("a", "10.0.0.7", 1).Ports[0].GIDs
			f.Unlock()
			if err := d.refresh(); err != nil {
				t.Error(err)
			}
		}
		return all, errno
	}
	if err := d.refresh(); err != nil {
		t.Fatal(err)
	}
	if g := d.GIDs()[0]; g == was {
		t.Errorf("the port is back at %v", g)
	}
}

// Whatever fails while a port's table is read again is said of the port or its card,
// and the port keeps the addresses that it has.
func TestAddressesThatCannotBeRead(t *testing.T) {
	for call, fails := range map[string]func(lib *ibv.Calls){
		"ibv_query_port": func(lib *ibv.Calls) {
			lib.QueryPort = func(ibv.Object, uint8) (ibv.PortAttr, syscall.Errno) { return ibv.PortAttr{}, syscall.EIO }
		},
		"ibv_query_gid_table": func(lib *ibv.Calls) {
			lib.QueryGIDTable = func(ibv.Object, int) ([]ibv.GIDEntry, syscall.Errno) { return nil, syscall.EIO }
			lib.QueryGID = func(ibv.Object, uint8, int) ([16]byte, syscall.Errno) { return [16]byte{}, syscall.EIO }
		},
	} {
		d, _ := used(t, fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)), lan(t), nil)
		was := d.GIDs()
		fails(d.card.Lib.Calls)
		var e *report.Error
		if err := d.refresh(); !errors.As(err, &e) || !errors.Is(err, syscall.EIO) || e.Op != call || e.Dev != "a" || e.Remedy == "" {
			t.Errorf("%s: %v", call, err)
		}
		if now := d.GIDs(); !slices.Equal(now, was) {
			t.Errorf("%s: %v, was %v", call, now, was)
		}
	}
}
