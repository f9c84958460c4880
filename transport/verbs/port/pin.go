package port

import (
	"errors"

	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
)

// pinned is memory of the host on one device.
type pinned struct {
	pd     *mr.PD
	region *mr.Region
}

// Pin registers memory for what peers send to it and write into it.
func (d *Device) Pin(b *memory.Buffer) (memory.Region, error) {
	pd, err := d.AcquirePD()
	if err != nil {
		return nil, err
	}
	region, err := pd.Register(b, ibv.AccessData)
	if err != nil {
		if left := pd.Release(); left != nil {
			err = errors.Join(err, left)
		}
		return nil, err
	}
	return pinned{pd, region}, nil
}

func (p pinned) Keys() fastpath.Keys {
	return fastpath.Keys{LKey: p.region.LKey, RKey: p.region.RKey}
}

func (p pinned) Release() error { return errors.Join(p.region.Release(), p.pd.Release()) }
