package release

import (
	"fmt"
	"slices"

	"weft/internal/host"
)

// nics is what a release remembers of a plugin's devices.
type nics struct {
	known bool
	real  int // those that it counted
	fused int // those that it made; -1: it has not tried
}

// topology fuses what should be one, once, and reads all properties.
func (c *Comm) topology() error {
	pl := c.plug
	if pl.nics.fused < 0 {
		if err := c.fuse(); err != nil {
			return err
		}
	}
	names := map[string]int{}
	for d := range pl.nics.real + pl.nics.fused {
		x, err := c.Net.Props(d)
		if err != nil {
			return err
		}
		if old, dup := names[x.Name]; dup && pl.table >= 3 {
			return fmt.Errorf("devices %d and %d share the name %s", old, d, x.Name)
		}
		names[x.Name] = d
		if pl.table >= host.SinceVDevices && (x.NVDevs < 1 || int(x.NVDevs) != len(x.VDevs)) {
			return fmt.Errorf("device %d: %d virtual devices: the adapter copies that many out of an uninitialised struct", d, x.NVDevs)
		}
		if c.P.R.Code >= 23000 && pl.table >= host.SinceVDevices && x.MaxP2pBytes-1 >= 1<<40 {
			return fmt.Errorf("device %d: maxP2pBytes %d is not in 1 to 1 TiB", d, x.MaxP2pBytes)
		}
		c.Props = append(c.Props, x)
	}
	return nil
}

// fuse makes one device of the ports of each card, which NCCL_NET_MERGE_LEVEL=PORT
// asks for by default, and counts what there is then.
func (c *Comm) fuse() error {
	pl := c.plug
	pl.nics.fused = 0
	if !c.P.R.Fuses() || !c.Net.Slots["makeVDevice"] {
		return nil
	}
	var cards []string
	ports := map[string][]int{}
	for d := range pl.nics.real {
		x, err := c.Net.Props(d)
		if err != nil {
			return err
		}
		if !slices.Contains(cards, x.PCIPath) {
			cards = append(cards, x.PCIPath)
		}
		ports[x.PCIPath] = append(ports[x.PCIPath], d)
	}
	for _, card := range cards {
		if len(ports[card]) < 2 || card == "(null)" {
			continue
		}
		if _, err := c.Net.MakeVDevice(ports[card][:min(len(ports[card]), c.Net.Devs)]); host.Code(err) == host.HostError {
			return err
		} // refused: NCCL uses them one by one
	}
	n, err := c.Net.Devices()
	pl.nics.fused = n - pl.nics.real
	return err
}
