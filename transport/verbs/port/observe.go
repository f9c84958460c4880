package port

import (
	"syscall"

	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

const linkDown = "the link is down"

// Observe keeps what an event says about a port, for those who choose paths.
func (d *Device) Observe(kind ibv.EventKind) {
	log := d.card.Lib.Log
	switch kind {
	case ibv.EventPortErr:
		d.now.setDown(linkDown, d.now.asks())
		log.Warn("%s port %d: the link went down; connections on it stall until it is back or they time out", d.NIC, d.number)
		return
	case ibv.EventPortActive:
		d.now.setDown("", d.now.asks())
	}
	log.Info(report.Net, "%s port %d: %v", d.NIC, d.number, kind)
	switch kind {
	case ibv.EventPortActive, ibv.EventGIDChange, ibv.EventLIDChange:
		d.renew()
	}
}

// renew reads the port's addresses again, and keeps the old ones where that fails.
func (d *Device) renew() {
	if err := d.refresh(); err != nil {
		d.card.Lib.Log.Info(report.Net, "%s port %d keeps GID %v: %v", d.NIC, d.number, d.GIDs()[0], err)
	}
}

// Look asks what the events of a port would have said that nobody could hear.
func (d *Device) Look() error {
	n := d.now.asks()
	attr, errno := d.card.QueryPort(d.number)
	if errno != 0 {
		return fail.Call("ibv_query_port", d.Name, errno, "port %d", d.number)
	}
	if attr.State != ibv.PortActive {
		d.now.setDown(linkDown, n)
		return nil
	}
	d.now.setDown("", n)
	d.renew()
	return nil
}

// refresh reads the port's table again and chooses anew: an address that
// changed while the link was down is no longer the one to connect from.
func (d *Device) refresh() error {
	c, n := d.card, d.now.asks()
	links, err := c.Lib.Host.Links()
	if err != nil {
		return err
	}
	var attr ibv.PortAttr
	var gids []gid.GID
	var why string
	errno := c.Ask(func(context ibv.Object) (errno syscall.Errno) {
		if attr, errno = c.Lib.QueryPort(context, d.number); errno == 0 {
			gids, why, err = chooseGIDs(c, context, d.rules, d.number, &attr, links)
		}
		return errno
	})
	if errno != 0 {
		return fail.Call("ibv_query_port", d.Name, errno, "port %d", d.number)
	}
	if err != nil {
		return err
	}
	d.now.Lock()
	defer d.now.Unlock()
	if n < d.now.gidsOf {
		return nil // another asked later
	}
	if len(d.now.gids) == 0 || d.now.gids[0] != gids[0] {
		c.Lib.Log.Info(report.Net, "%s port %d uses GID %v: %s", d.Name, d.number, gids[0], why)
	}
	d.now.gids, d.now.port, d.now.gidsOf = gids, attr, n
	return nil
}
