package verbs

import (
	"fmt"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/hca"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
)

// found is what discovery met.
type found struct {
	passed   []string // why each device or port is not used
	filtered bool     // NCCL_IB_HCA is a reason
}

// discover opens the cards and lists their usable ports, at least one.
func discover(l *card.Library, rules *gid.Rules) ([]*port.Device, error) {
	filter, problems := hca.Parse(l.Knobs.Text(knob.IBHCA))
	for _, line := range problems {
		l.Log.Warn("%s", line)
	}
	links, err := l.Host.Links()
	if err != nil {
		return nil, err
	}
	list, entries, errno := l.GetDeviceList()
	if errno == syscall.ENOSYS {
		return nil, none("the kernel shows %s no RDMA (ib_uverbs is not loaded)", l.Name)
	}
	if errno != 0 {
		return nil, fmt.Errorf("%w (%w)", fail.Call("ibv_get_device_list", "", errno, "%s", l.Name), ErrNone)
	}
	defer l.FreeDeviceList(list)
	choice := &port.Choice{HCA: filter, Rules: rules, Links: links}
	var devices []*port.Device
	var met found
	for i := range entries {
		devices = append(devices, ofCard(l, &entries[i], choice, &met)...)
	}
	if len(devices) == 0 {
		if filter.Names() && met.filtered {
			l.Log.Warn("NCCL_IB_HCA=%s names no RDMA port that can be used here: %s [WEFT-023]", l.Knobs.Text(knob.IBHCA), few(met.passed, ", "))
		}
		return nil, nothing(l, met.passed)
	}
	port.Arrange(devices, l.Knobs.Int(knob.IBPCIOrder) != 0)
	announce(l, devices, met.passed)
	return devices, nil
}

// ofCard opens a card of the list and makes its devices. A card that has none is
// closed again.
func ofCard(l *card.Library, e *ibv.DeviceEntry, choice *port.Choice, met *found) []*port.Device {
	if e.Transport != ibv.TransportIB {
		met.passed = append(met.passed, e.Name+" (neither InfiniBand nor RoCE)")
		return nil
	}
	c, err := card.Open(l, e)
	if err != nil {
		report.Say(l.Log, err)
		met.passed = append(met.passed, e.Name+" (cannot be opened)")
		return nil
	}
	domains := mr.DomainsOf(c)
	var devices []*port.Device
	used := 0
	for number := uint8(1); number <= c.Attr.Ports && number != 0; number++ {
		d, why := port.Find(choice, c, domains, number)
		if d == nil {
			met.passed = append(met.passed, fmt.Sprintf("%s:%d (%s)", e.Name, number, why))
			met.filtered = met.filtered || why == port.LeftOut
			continue
		}
		if used++; used > 1 {
			d.Name = fmt.Sprintf("%s:%d", e.Name, number)
		}
		devices = append(devices, d.Views(l.Knobs.Int(knob.IBDataDirect) == 2)...)
	}
	if len(devices) == 0 {
		c.Close()
	}
	return devices
}
