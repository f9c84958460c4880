package transport

import "weft/transport/carrier"

// What a comm asks of its carrier, if that can do it.

func (c *Comm) fence() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.Fence()
	}
}

func (c *Comm) fenceLater() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.FenceLater()
	}
}

func (c *Comm) drain() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.Drain()
	}
}

// left is told that the peer has closed its side.
func (c *Comm) left() {
	if o, is := c.carrier.(carrier.OneSided); is {
		o.Left()
	}
}
