package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

const attemptLimit = 5 * time.Second // from dialling to frame 2

// Opening is what a connection is for, and how it begins.
type Opening struct {
	Role    wire.Role
	First   []byte // the message that goes with frame 1, in a packet of full size; nil: none does
	Options tcp.Options
}

// Won is an attempt whose listener proved that it knows the token.
type Won struct {
	Conn  *Conn
	Path  Path
	Token *wire.Token
	F1    wire.Frame1
	F2    wire.Frame2

	guard     *Guard
	confirmed bool // frame 3 has been sent
}

// Attempt dials p and exchanges frames 1 and 2 under a nonce of its own; it
// sets connected (unless nil) once the address has answered. What the listener
// says behind frame 2 has not been read.
func (n *Network) Attempt(ctx context.Context, h *wire.Handle, p Path, by Opening, connected *atomic.Bool) (*Won, error) {
	var k *Conn
	o := by.Options
	if by.Role != wire.RoleControl {
		o.Congestion = tcp.CongestionFor(n.knobs, n.Local.Own(p.local, p.Remote.Addr()))
	}
	for {
		var err error
		if k, err = dial(ctx, p, n.Narrow.apply(p, o), !n.Local.has(p.Remote.Addr())); err == nil {
			break
		}
		if !task.Exhausted(err) || !n.Files.Raise(n.log) {
			return nil, err
		}
	}
	n.table.Holds(k.FD, n.log)
	if connected != nil {
		connected.Store(true)
	}
	w := &Won{Conn: k, Path: p, Token: &h.Token, guard: &Guard{}}
	w.F1 = wire.Frame1{Version: wire.Version, Role: by.Role, ListenID: h.ListenID, Nonce: wire.NewNonce()}
	w.F1.Sign(w.Token)
	k.SetDeadline(time.Now().Add(attemptLimit))
	uncut := CutOnCancel(ctx, k)
	var pads []byte
	if by.First != nil {
		pads, w.guard = n.Fill(k, p, wire.Frame1Size)
	}
	err := w.exchange(pads, by.First)
	if !uncut() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if w.guard.Stop() {
			err = &NarrowError{p, w.guard.MTU}
		}
		k.Close()
		return nil, err
	}
	return w, nil
}

// Judge tells an error of what follows frame 2 that is the path's from others.
func (w *Won) Judge(err error) error { return w.guard.Judge(w.Path, err) }

var errImposter = errors.New("what answered does not know the token")

func (w *Won) exchange(pads, first []byte) error {
	b := w.F1.Append(make([]byte, 0, wire.Frame1Size+len(first)))
	if len(pads) > 0 { // a path of small packets carries frame 1
		if _, err := w.Conn.Write(b); err != nil {
			return fmt.Errorf("sending frame 1: %w", err)
		}
		b = pads
	}
	if _, err := w.Conn.Write(append(b, first...)); err != nil {
		return fmt.Errorf("sending frame 1, or what follows it: %w", err)
	}
	var answer [wire.Frame2Size]byte
	if _, err := io.ReadFull(w.Conn, answer[:]); err != nil {
		return fmt.Errorf("waiting for frame 2: %w", err)
	}
	var err error
	if w.F2, err = wire.ParseFrame2(answer[:]); err != nil {
		return err
	}
	if !w.F2.Verify(w.Token, &w.F1) {
		return errImposter
	}
	return nil
}

// Say sends b, the first time behind frame 3 and in the same write.
func (w *Won) Say(b []byte) error {
	if !w.confirmed {
		w.confirmed = true
		var f3 wire.Frame3
		f3.Sign(w.Token, &w.F1, &w.F2)
		b = append(f3.Append(make([]byte, 0, wire.Frame3Size+len(b))), b...)
	}
	_, err := w.Conn.Write(b)
	return err
}

// ReadHello reads the listening side's hello, or why there is none.
func (w *Won) ReadHello(rd *wire.Reader, mine *wire.Hello) (*wire.Hello, error) {
	frame, err := rd.NextPadded()
	if err != nil {
		return nil, fmt.Errorf("reading hello: %w", err)
	}
	h, err := wire.ParseHello(frame)
	if err != nil {
		return nil, err
	}
	if mismatch := Versions(mine, &h); mismatch != nil {
		return nil, mismatch
	}
	return &h, nil
}

// Rejected is why the listening side ends the handshake.
func (w *Won) Rejected(peer *wire.Hello, frame []byte) error {
	m, err := wire.ParseReject(frame)
	if err != nil {
		return err
	}
	return report.Errorf(report.Peer, "connect", "refused: %s", m.Reason).With(PeerName(peer, w.Conn)).Try("look at the peer's log")
}
