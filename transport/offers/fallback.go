package offers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/route"
	"weft/transport/wire"
)

// What a connection runs over when not over the ports that were asked for: other
// ports, or TCP. Whether it may, and how it is told.

// Listen is why dev, which has no ports, must not go over TCP either.
func (w *Way) Listen(dev *device.Device) error {
	if why := w.whyNoPorts(dev); why != "" {
		return w.mayUseTCP("listen", dev, "", why)
	}
	return nil
}

// Spared says that an RDMA device's comm goes over TCP, unless it must not.
func (w *Way) Spared(a *carrier.Arrival, last *wire.Go) error {
	why := "the connecting side says: " + last.NoRDMA
	if err := w.mayUseTCP("accept", a.Device, a.Peer, why); err != nil {
		return err
	}
	if a.Device.Verbs != nil {
		tellTCP(a.Log, a.Device, "<-", a.Peer, why)
	}
	return nil
}

// mayUseTCP is why a comm of dev must not go over TCP, which why leads to; nil:
// it may.
func (w *Way) mayUseTCP(op string, dev *device.Device, peer, why string) error {
	switch k := w.Knobs; {
	case k.Text(knob.Require) == "rdma":
		return report.Errorf(report.Usage, op, "WEFT_REQUIRE=rdma, and the connection would go over TCP: %s", why).
			On(dev.Name).With(peer).Try("let both hosts reach each other by RDMA, or unset WEFT_REQUIRE")
	case dev.Verbs != nil && k.Int(knob.IBOOORQ) != 0:
		return report.Errorf(report.Usage, op, "NCCL_IB_OOO_RQ asks for out-of-order receives, and the connection would go over TCP: %s", why).
			On(dev.Name).With(peer).Try("unset NCCL_IB_OOO_RQ, or let both hosts reach each other by RDMA")
	}
	return nil
}

// whyNoPorts is why this process has no RDMA ports to offer, for the peer; "": it has.
func (w *Way) whyNoPorts(dev *device.Device) string {
	if dev.Verbs != nil {
		return ""
	}
	return cmp.Or(w.NoVerbs, "it has no RDMA device")
}

// noPorts is the same of the listening side, as it said.
func noPorts(reason string) string {
	return "the peer has no RDMA port for it: " + cmp.Or(reason, "it does not say why")
}

// tellTCP tells why an RDMA device's connection is a slow one.
func tellTCP(log report.Logger, dev *device.Device, arrow, peer, why string) {
	dev.TCPTold.Say(log, "%s %s %s goes over TCP, not by RDMA: %s", dev.Name, arrow, peer, why)
}

// tellOtherPorts tells that a connection runs over other ports than both hosts
// asked for, aloud where that is slower than what NCCL reckons with.
func (c *caller) tellOtherPorts(pairs []route.Pair, peerAsked []uint16, tried []string) {
	asked := c.Device.Indices()
	elsewhere := func(p route.Pair) bool {
		return !slices.Contains(asked, p.LocalIndex) || !slices.Contains(peerAsked, p.PeerIndex)
	}
	if !slices.ContainsFunc(pairs, elsewhere) {
		return
	}
	named := func(index uint16) string {
		if i := slices.IndexFunc(c.Session.Devices, func(d wire.Device) bool { return d.Index == index }); i >= 0 {
			return c.Session.Devices[i].Name
		}
		return fmt.Sprintf("device %d", index)
	}
	got, at := 0, []string{}
	for i := range pairs {
		p := &pairs[i]
		got += min(p.Speed, p.PeerSpeed)
		at = append(at, fmt.Sprintf("%s to %s", p.Local.Name, named(p.PeerIndex)))
	}
	theirs, names := 0, []string{}
	for _, index := range peerAsked {
		names = append(names, named(index))
		if i := slices.IndexFunc(c.Session.Devices, func(d wire.Device) bool { return d.Index == index }); i >= 0 {
			theirs += int(c.Session.Devices[i].SpeedMbps)
		}
	}
	want := min(c.Device.SpeedMbps, theirs)
	why := "they share no subnet, and no route joins them"
	if len(tried) > 0 {
		why = strings.Join(tried, "; ")
	}
	line := fmt.Sprintf("%s -> %s runs over %s (%s), not over %s to %s (%s), which were asked for: %s", c.Device.Name, c.Peer,
		strings.Join(at, ", "), gigabits(got), c.Device.Name, strings.Join(names, "+"), gigabits(want), why)
	if got >= want {
		c.Log.Info(report.Net, "%s", line)
		return
	}
	c.Device.SlowerTold.Say(c.Log, "%s", line)
}

func gigabits(mbps int) string { return fmt.Sprintf("%g Gb/s", float64(mbps)/1000) }
