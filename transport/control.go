package transport

import (
	"context"
	"fmt"
	"time"

	"weft/transport/device"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// Both ends of the handshake that opens a control connection.

// openSession opens the control connection to the process behind a handle,
// along the path that its comm's handshake won.
func (e *env) openSession(ctx context.Context, h *wire.Handle, p rendezvous.Path, dev *device.Device, trafficClass int32) (*session.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, rendezvous.HandshakeLimit)
	defer cancel()
	w, err := e.net.Attempt(ctx, h, p, rendezvous.Opening{Role: wire.RoleControl, Options: tcp.ControlOptions(e.cfg.Knobs, trafficClass)}, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the control connection: %w", err)
	}
	s, err := e.opened(w, dev)
	if err != nil {
		w.Conn.Close()
		return nil, fmt.Errorf("opening the control connection: %w", err)
	}
	return s, nil
}

// opened is the connecting side of handshake.control.
func (e *env) opened(w *rendezvous.Won, dev *device.Device) (*session.Session, error) {
	w.Conn.SetDeadline(time.Now().Add(e.timeout))
	mine := e.hello(dev)
	if err := w.Say(mine.Append(nil)); err != nil {
		return nil, fmt.Errorf("sending hello: %w", err)
	}
	rd := wire.NewReader(w.Conn)
	peer, err := w.ReadHello(rd, &mine)
	if err != nil {
		return nil, err
	}
	frame, err := rd.Next()
	if err == nil && wire.KindOf(frame) == wire.KindReject {
		return nil, w.Rejected(peer, frame)
	}
	var devices []wire.Device
	if err == nil {
		devices, frame, err = wire.ReadInventory(rd, frame)
	}
	if err != nil {
		return nil, fmt.Errorf("reading inventory and session: %w", err)
	}
	grant, err := wire.ParseSession(frame)
	if err != nil {
		return nil, err
	}
	w.Conn.SetDeadline(time.Time{})
	s := e.sessions.New(w.Conn, peer, devices, true)
	s.ID, s.Key = grant.Session, grant.Key
	s.Start(rd)
	return s, nil
}

// control serves a control connection: hellos, then what this process has and the
// session. This goroutine goes on as the session's reader.
func (h *handshake) control() error {
	if _, err := h.conn.Write(h.f2.Append(nil)); err != nil {
		return fmt.Errorf("sending frame 2: %w", err)
	}
	if err := h.confirmed(); err != nil {
		return err
	}
	h.conn.SetDeadline(time.Now().Add(h.timeout))
	if err := h.conn.Apply(tcp.ControlOptions(h.cfg.Knobs, -1)); err != nil {
		return err
	}
	if err := h.readHello(nil); err != nil {
		return err
	}
	if n := h.reader.Buffered(); n != 0 {
		return fmt.Errorf("%d bytes before the session was granted", n)
	}
	s := h.sessions.New(h.conn, &h.hello, nil, false)
	s.ID = wire.Random64() | 1
	mine := h.env.hello(h.listener.dev)
	answer := mine.Append(nil)
	if err := h.sessions.Claim(s); err != nil {
		m := wire.Reject{Reason: err.Error()}
		h.conn.Write(m.Append(answer))
		return err
	}
	inv := h.devices.Inventory(h.cfg.Interfaces)
	grant := wire.Session{Header: wire.Header{Session: s.ID}, Key: s.DrawKey()}
	if _, err := h.conn.Write(grant.Append(inv.Append(answer))); err != nil {
		s.End(s.Broken("sending session", err))
		return nil
	}
	h.conn.SetDeadline(time.Time{})
	s.Vacant(h.timeout)
	s.Start(wire.NewReader(h.conn))
	return nil
}
