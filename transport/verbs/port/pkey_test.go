package port

import (
	"strings"
	"testing"
	"weft/internal/fakeibv"
)

// Ports whose table lacks the key are left out, and say what they have.
func TestPartitionByValue(t *testing.T) {
	for _, c := range []struct {
		name, value string
		keys        []uint16
		want        int    // index; -1: the port is not used
		says        string // in the line that tells why
	}{
		{"the first", "0xffff", []uint16{0xffff, 0x8111}, 0, ""},
		{"membership does not count", "0x0111", []uint16{0xffff, 0x8111}, 1, ""},
		{"a limited member", "0x8111", []uint16{0xffff, 0x0111}, 1, ""},
		{"a full member comes first", "0x8111", []uint16{0x0111, 0x7fff, 0x8111}, 2, ""},
		{"a number as people write it", "273", []uint16{0xffff, 0, 0x8111}, 2, ""},
		{"absent", "0x8222", []uint16{0xffff, 0, 0x8111}, -1, "NCCL_IB_PKEY_VALUE=0x8222 is not in the port's table, which has 0xffff, 0x8111"},
		{"an empty entry is no key", "0x8000", []uint16{0, 0x8000}, -1, "is not in the port's table"},
		{"a table that cannot be read", "0x8111", []uint16{0xffff}, -1, "ibv_query_pkey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			card := fakeibv.RoCE("a", "10.0.0.1", 1)
			port := &card.Ports[0]
			port.PKeys, port.PKeyTableLen = c.keys, uint16(len(c.keys))
			if c.says == "ibv_query_pkey" {
				port.PKeyTableLen++
			}
			d, why, log := find(t, fakeibv.New(t, card), lan(t), map[string]string{"NCCL_IB_PKEY_VALUE": c.value, "NCCL_IB_PKEY": "7"})
			if c.want < 0 {
				if d != nil || why != "not in the partition" || log.Count("WARN", c.says) != 1 {
					t.Errorf("%s; %q", why, log.Lines())
				}
				return
			}
			if d == nil {
				t.Fatal(why, log.Lines())
			}
			if index, how, err := d.Partition(); int(index) != c.want || err != nil || !strings.Contains(how, "NCCL_IB_PKEY_VALUE") {
				t.Errorf("index %d (%s), %v; want %d", index, how, err, c.want)
			}
		})
	}
}

// The subnet manager moves and takes keys while the port is in use.
func TestPartitionThatMoves(t *testing.T) {
	card := fakeibv.RoCE("a", "10.0.0.1", 1)
	card.Ports[0].PKeys, card.Ports[0].PKeyTableLen = []uint16{0xffff, 0x8111}, 2
	f := fakeibv.New(t, card)
	d, _ := used(t, f, lan(t), map[string]string{"NCCL_IB_PKEY_VALUE": "0x8111"})
	f.Cards[0].Ports[0].PKeys = []uint16{0x8111, 0xffff}
	if index, _, err := d.Partition(); index != 0 || err != nil {
		t.Errorf("index %d, %v", index, err)
	}
	f.Cards[0].Ports[0].PKeys = []uint16{0xffff, 0xffff}
	if _, _, err := d.Partition(); err == nil || !strings.Contains(err.Error(), "is not in the port's table") {
		t.Errorf("%v", err)
	}
}
