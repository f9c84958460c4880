package transport

import (
	"errors"
	"io"
	"syscall"

	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/wire"
)

// dial is whom a connect is for, and whereto.
type dial struct {
	ctx          *Context
	dev          *device.Device
	handle       wire.Handle
	trafficClass int32
}

// lost says why no address answered as the listener.
func (d *dial) lost(err error, rounds int) error {
	if task.Exhausted(err) {
		return task.NoFiles("connect", err).On(d.dev.Name)
	}
	e := report.Errorf(report.Network, "connect", "%w (%d rounds)", err, rounds).On(d.dev.Name).With(d.peer(nil))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return e.Try("the peer's process has ended, or a firewall rejects its ports: see WEFT_PORT_RANGE").See("WEFT-101 WEFT-103 WEFT-115")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return e.Try("no route from %s to the peer: see NCCL_SOCKET_IFNAME on both hosts", d.dev.Name).See("WEFT-101 WEFT-102 WEFT-115")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Cause = report.Host
		return e.Try("%s lost its address, or no local port is free: see net.ipv4.ip_local_port_range", d.dev.Name).See("WEFT-141")
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return e.Try("the peer closed this listen already, or something else has its port")
	}
	return e.Try("packets to the peer are lost: a firewall drops them, or the address belongs to another network; see NCCL_SOCKET_IFNAME and WEFT_PORT_RANGE").See("WEFT-101 WEFT-111 WEFT-115 WEFT-116")
}

// peer names the other side as well as is known.
func (d *dial) peer(w *rendezvous.Won) string {
	if w != nil {
		return w.Conn.Remote().String()
	}
	return d.handle.Addrs[0].AddrPort().String()
}

// classify keeps an error that knows its cause and gives others the peer's.
func (d *dial) classify(err error, w *rendezvous.Won) error {
	var e *report.Error
	if errors.As(err, &e) {
		if e.Dev == "" {
			e.Dev = d.dev.Name
		}
		return err
	}
	if task.Exhausted(err) {
		return task.NoFiles("connect", err).On(d.dev.Name)
	}
	if lost := (*rendezvous.NarrowError)(nil); errors.As(err, &lost) {
		return report.Errorf(report.Network, "connect", "%w", err).On(d.dev.Name).With(d.peer(w)).
			Try("give every port and tunnel between the hosts the same MTU as their interfaces")
	}
	cause := report.Network
	if rendezvous.PeerGone(err) || errors.Is(err, wire.ErrMalformed) {
		cause = report.Peer
	}
	return report.Errorf(cause, "connect", "the handshake failed: %w", err).On(d.dev.Name).With(d.peer(w)).
		Try("look at the peer's log")
}
