package card

import (
	"fmt"

	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// Card is one device of libibverbs; its ports are devices of weft's. Memory and
// events belong to it, not to a port.
type Card struct {
	device
	outage
	owners
	anyOrder

	Sysfs string
	Attr  ibv.DeviceAttr

	ECE     Feature // agreeing on the vendor's enhancements
	DMABuf  Feature // registering DMA-BUFs
	Relaxed Feature // relaxed ordering

	DirectPath string  // PCI path of its data-direct function; "": none
	Direct     Feature // registering DMA-BUFs through that
}

// Open opens a device of the library's list, for good.
func Open(l *Library, e *ibv.DeviceEntry) (*Card, error) {
	sysfs := e.Sysfs
	if sysfs == "" {
		sysfs = l.Host.Sys("class/infiniband", e.Name)
	}
	o, err := open(l, e)
	if err != nil {
		return nil, err
	}
	c := &Card{device: device{Lib: l, Name: e.Name}, Sysfs: sysfs}
	c.life.opened = o
	c.outage = outage{of: &c.device, stir: make(chan struct{}, 1), ended: make(chan struct{})}
	attr, errno := l.QueryDevice(o.context)
	if errno != 0 {
		c.Close()
		return nil, fail.Call("ibv_query_device", e.Name, errno, "")
	}
	c.Attr = attr
	c.expect()
	mlx5 := servedByMLX5(l, attr.Vendor, e.Device)
	if mlx5 {
		c.DirectPath = findDirect(&c.device, sysfs)
	}
	c.anyOrder = findAnyOrder(&c.device, mlx5)
	return c, nil
}

// expect notes which optional powers the library already rules out.
func (c *Card) expect() {
	for call, f := range map[string]*Feature{
		"ibv_query_ece": &c.ECE, "ibv_set_ece": &c.ECE, "ibv_reg_dmabuf_mr": &c.DMABuf, "ibv_reg_mr_iova2": &c.Relaxed,
	} {
		if c.Lib.Lacks[call] {
			f.No(fmt.Sprintf("%s has no %s", c.Lib.Name, call))
		}
	}
}
