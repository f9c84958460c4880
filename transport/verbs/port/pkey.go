package port

import (
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
)

// A partition key is 15 bits of value under one bit of membership. Full members
// hear everybody in the partition, limited ones only full members.
const (
	pkeyValue = 1<<15 - 1
	pkeyFull  = 1 << 15
)

// Partition is that of the device's port, for a queue pair of it: who makes one
// holds the card.
func (d *Device) Partition() (index uint16, how string, err error) {
	return partition(d.card, d.number, d.Attr().PKeyTableLen)
}

// partition finds the index of the partition key for a port's queue pairs, and
// says how. A value is looked up each time, as the subnet manager may move it.
func partition(c *card.Card, port uint8, size uint16) (index uint16, how string, err error) {
	value := c.Lib.Knobs.Int(knob.IBPkeyValue)
	if value < 0 {
		index = uint16(c.Lib.Knobs.Int(knob.IBPkey))
		return index, fmt.Sprintf("partition key index %d (NCCL_IB_PKEY)", index), nil
	}
	limited := -1
	var have []string
	for i := range int(size) {
		key, errno := c.Lib.QueryPKey(c.Context(), port, i)
		if errno != 0 {
			return 0, "", fail.Call("ibv_query_pkey", c.Name, errno, "port %d, index %d", port, i)
		}
		switch {
		case key&pkeyValue == 0: // an empty entry
			continue
		case int64(key&pkeyValue) != value&pkeyValue:
			have = append(have, fmt.Sprintf("%#04x", key))
			continue
		case key&pkeyFull == 0:
			if limited < 0 {
				limited = i
			}
			continue
		}
		return uint16(i), fmt.Sprintf("partition key %#04x at index %d (NCCL_IB_PKEY_VALUE)", key, i), nil
	}
	if limited < 0 {
		return 0, "", report.Errorf(report.Host, "choose a partition key", "NCCL_IB_PKEY_VALUE=%#04x is not in the port's table, which has %s", value, report.Few(have, 12, ", ")).
			On(fmt.Sprintf("%s:%d", c.Name, port)).Try("have the subnet manager make the port a member of that partition, or name one that it is in")
	}
	return uint16(limited), fmt.Sprintf("partition key %#04x at index %d (NCCL_IB_PKEY_VALUE)", value&pkeyValue, limited), nil
}
