package verbs

import (
	"strings"
	"testing"
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
			card := roce("a", "10.0.0.1", 1)
			port := &card.ports[0]
			port.pkeys, port.PKeyTableLen = c.keys, uint16(len(c.keys))
			if c.says == "ibv_query_pkey" {
				port.PKeyTableLen++
			}
			p, log, err := newFake(t, card).start(t, fakeHost(t, eth(1, true, "10.0.0.1/24")), map[string]string{"NCCL_IB_PKEY_VALUE": c.value, "NCCL_IB_PKEY": "7"})
			if c.want < 0 {
				if err == nil || !strings.Contains(err.Error(), "a:1 (not in the partition)") || log.Count("WARN", c.says) != 1 {
					t.Errorf("%v; %q", err, log.Lines())
				}
				return
			}
			if err != nil {
				t.Fatal(err, log.Lines())
			}
			defer p.Close()
			if index, how, err := p.Devices()[0].partition(); int(index) != c.want || err != nil || !strings.Contains(how, "NCCL_IB_PKEY_VALUE") {
				t.Errorf("index %d (%s), %v; want %d", index, how, err, c.want)
			}
		})
	}
}

// The subnet manager moves and takes keys while the port is in use.
func TestPartitionThatMoves(t *testing.T) {
	card := roce("a", "10.0.0.1", 1)
	card.ports[0].pkeys, card.ports[0].PKeyTableLen = []uint16{0xffff, 0x8111}, 2
	f := newFake(t, card)
	p, log, err := f.start(t, fakeHost(t, eth(1, true, "10.0.0.1/24")), map[string]string{"NCCL_IB_PKEY_VALUE": "0x8111"})
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	defer p.Close()
	f.cards[0].ports[0].pkeys = []uint16{0x8111, 0xffff}
	if index, _, err := p.Devices()[0].partition(); index != 0 || err != nil {
		t.Errorf("index %d, %v", index, err)
	}
	f.cards[0].ports[0].pkeys = []uint16{0xffff, 0xffff}
	if _, _, err := p.Devices()[0].partition(); err == nil || !strings.Contains(err.Error(), "is not in the port's table") {
		t.Errorf("%v", err)
	}
}
