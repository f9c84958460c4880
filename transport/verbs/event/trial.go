package event

import (
	"errors"
	"fmt"
	"syscall"

	"weft/transport/verbs/card"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// works reports that a card does. A driver that resets its card takes the device
// away, and the context with it, and brings another one that has its name: that
// is opened in its place, while the card is quiet.
func works(c *card.Card, ports []*port.Device, quiet func(swap func())) error {
	err := trial(ports)
	if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENODEV) {
		return err
	}
	if e := c.Reopen(quiet); e != nil {
		return fmt.Errorf("%w; opening it anew: %w", err, e)
	}
	return trial(ports)
}

// trial makes what a connection needs first, ends it, and looks at the ports anew.
func trial(ports []*port.Device) (err error) {
	d := ports[0]
	pd, err := d.AcquirePD()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pd.Release()) }()
	cq, err := qp.NewCQ(pd, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cq.Close()) }()
	q, err := qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
	if err != nil {
		return err
	}
	if err := q.Close(); err != nil {
		return err
	}
	for _, d := range ports {
		if err := d.Look(); err != nil {
			return err
		}
	}
	return nil
}
