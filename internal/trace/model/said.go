package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"weft/internal/owner"
	"weft/transport/record/format"
)

// Said is what the process said of a stall, in its host's log.
type Said struct {
	Time uint64
	Text string
}

// said puts parts of texts together, in any order. Of a text whose first part is
// gone nothing is shown.
func said(parts []format.Record) (all []Said) {
	slices.SortStableFunc(parts, func(a, b format.Record) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Flags, b.Flags)) })
	for i := 0; i < len(parts); {
		first, text := parts[i], []byte{}
		for n := uint32(0); i < len(parts) && parts[i].ID == first.ID; i++ {
			if parts[i].Flags == n && n < format.SaidMost {
				for _, w := range parts[i].More {
					text = binary.LittleEndian.AppendUint64(text, w)
				}
				n++
			}
		}
		if end := bytes.IndexByte(text, 0); end >= 0 {
			text = text[:end]
		}
		if len(text) > 0 {
			all = append(all, Said{first.Time, owner.Line(text)})
		}
	}
	slices.SortStableFunc(all, func(a, b Said) int { return cmp.Compare(a.Time, b.Time) })
	return all
}
