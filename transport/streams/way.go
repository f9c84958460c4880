package streams

import (
	"context"
	"errors"
	"fmt"

	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/device"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// Shared is a carrier.Plain: it always serves.
var _ carrier.Plain = (*Shared)(nil)

// Listen allows every listen.
func (s *Shared) Listen(*device.Device) error { return nil }

// Lanes says how many streams a comm is to have.
func (s *Shared) Lanes(dev *device.Device, m *wire.Lanes) {
	m.Stash = tcp.Stash
	m.Lanes = append(m.Lanes, wire.Lane{Kind: wire.LaneTCP, Streams: uint8(dev.Streams()), Device: dev.Indices()[0], MTU: uint32(dev.TCP.MTU)})
}

// Connect opens the comm's further streams.
func (s *Shared) Connect(ctx context.Context, c *carrier.Call) (*carrier.Made, error) {
	conns, err := s.streams(ctx, c)
	drop := func() {
		for _, k := range conns {
			k.Close()
		}
	}
	if err != nil {
		drop()
		return nil, err
	}
	return &carrier.Made{By: s.carrier(options{c.For, conns, c.Wants.Stash}), Drop: drop}, nil
}

// Accept sets on all streams what a listening socket cannot give them, and makes
// the listening side's carrier of them.
func (s *Shared) Accept(f *carrier.For, conns []*rendezvous.Conn) (carrier.Carrier, error) {
	o := tcp.DataOptions(s.Knobs, f.TrafficClass)
	o.NoDelay, o.RcvBuf, o.SndBuf = false, -1, -1 // inherited from the listening socket
	for _, k := range conns {
		if err := k.Apply(o); err != nil {
			return nil, report.Errorf(report.Host, "accept", "%w", err).On(f.Device.Name).With(f.Peer).
				Try("a seccomp or container profile may forbid that option; see NCCL_SOCKET_TOS_CONFIG")
		}
	}
	return s.carrier(options{*f, conns, 0}), nil
}

// streams opens the further streams of a comm, all at once.
func (s *Shared) streams(ctx context.Context, c *carrier.Call) ([]*rendezvous.Conn, error) {
	n := c.Wants.Streams()
	conns := make([]*rendezvous.Conn, 1, n)
	conns[0] = c.Won.Conn
	type opened struct {
		i   int
		w   *rendezvous.Won
		err error
	}
	results := make(chan opened, n)
	for i := 1; i < n; i++ {
		go func() {
			defer task.Rescue(s.Log, "connect", func(err error) { results <- opened{i, nil, err} })
			path := rendezvous.StreamPath(c.Device.Interfaces(), c.Handle, i, c.Won.Path)
			v, err := s.stream(ctx, c, path, i)
			if err != nil && path != c.Won.Path {
				v, err = s.stream(ctx, c, c.Won.Path, i)
			}
			results <- opened{i, v, err}
		}()
	}
	all := make([]*rendezvous.Conn, n)
	all[0] = c.Won.Conn
	var failed error
	for i := 1; i < n; i++ {
		r := <-results
		if r.err != nil {
			failed = fmt.Errorf("opening stream %d of %d: %w", r.i, n, r.err)
			continue
		}
		all[r.i] = r.w.Conn
	}
	if failed == nil {
		return all, nil
	}
	for _, k := range all[1:] {
		if k != nil {
			conns = append(conns, k)
		}
	}
	return conns, failed
}

// stream opens stream i of the comm along a path, with packets that pass there.
func (s *Shared) stream(ctx context.Context, c *carrier.Call, path rendezvous.Path, i int) (*rendezvous.Won, error) {
	for {
		m := wire.Stream{Parent: c.Won.F2.Nonce, Index: uint8(i)}
		v, err := s.Net.Attempt(ctx, c.Handle, path,
			rendezvous.Opening{Role: wire.RoleStream, First: m.Append(nil), Options: tcp.DataOptions(s.Knobs, c.TrafficClass)}, nil)
		if err == nil {
			if err = v.Judge(readTaken(v.Conn)); err == nil {
				err = v.Say(nil)
			}
			if err == nil {
				s.Net.Narrow.Passed(path, v.Conn, c.Device.Name, func() string { return v.Conn.Remote().String() }, c.Log)
				return v, nil
			}
			v.Conn.Close()
		}
		if lost := (*rendezvous.NarrowError)(nil); !errors.As(err, &lost) || !s.Net.Narrow.Smaller(lost) {
			return nil, err
		}
	}
}

func readTaken(c *rendezvous.Conn) error {
	frame, err := c.Frame()
	if err == nil {
		_, err = wire.ParseTaken(frame)
	}
	if err != nil {
		return fmt.Errorf("waiting for taken: %w", err)
	}
	return nil
}
