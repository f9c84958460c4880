package transport

import "weft/transport/device"

// Fuse makes one device of several, by their indices, and returns it.
func (c *Core) Fuse(members []int) (*device.Device, error) { return c.devices.Fuse(members) }

// Unfuse forgets the fused devices, unless one of them is in use.
func (c *Core) Unfuse() bool { return c.devices.Unfuse(c.asked) }

// asked reports whether a listen or a connect of any context is on d.
func (c *Core) asked(d *device.Device) bool {
	c.contexts.Lock()
	defer c.contexts.Unlock()
	for x := range c.contexts.all {
		if x.asks(d) {
			return true
		}
	}
	return false
}

func (x *Context) asks(d *device.Device) bool {
	x.owned.Lock()
	defer x.owned.Unlock()
	for l := range x.owned.listeners {
		if l.dev == d {
			return true
		}
	}
	for _, k := range x.owned.connectors {
		if k.dev == d {
			return true
		}
	}
	return false
}
