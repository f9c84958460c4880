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

// Won is an attempt whose listener proved that it knows the token. Frame 3 has
// not been sent yet.
type Won struct {
	Conn  *Conn
	Path  Path
	Token *wire.Token
	F1    wire.Frame1
	F2    wire.Frame2
}

// Attempt dials p and exchanges frames 1 and 2 under a nonce of its own; it
// sets connected (unless nil) once the address has answered.
func (n *Network) Attempt(ctx context.Context, h *wire.Handle, p Path, role wire.Role, o tcp.Options, connected *atomic.Bool) (*Won, error) {
	var k *Conn
	if role != wire.RoleControl {
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
	w := &Won{Conn: k, Path: p, Token: &h.Token}
	w.F1 = wire.Frame1{Version: wire.Version, Role: role, ListenID: h.ListenID, Nonce: wire.NewNonce()}
	w.F1.Sign(w.Token)
	k.SetDeadline(time.Now().Add(attemptLimit))
	uncut := CutOnCancel(ctx, k)
	err := w.exchange()
	if !uncut() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return w, nil
}

var errImposter = errors.New("what answered does not know the token")

func (w *Won) exchange() error {
	var b [wire.Frame1Size]byte
	if _, err := w.Conn.Write(w.F1.Append(b[:0])); err != nil {
		return fmt.Errorf("sending frame 1: %w", err)
	}
	if _, err := io.ReadFull(w.Conn, b[:wire.Frame2Size]); err != nil {
		return fmt.Errorf("waiting for frame 2: %w", err)
	}
	var err error
	if w.F2, err = wire.ParseFrame2(b[:wire.Frame2Size]); err != nil {
		return err
	}
	if !w.F2.Verify(w.Token, &w.F1) {
		return errImposter
	}
	return nil
}

// Confirm sends frame 3 and, in the same write, what follows it.
func (w *Won) Confirm(rest []byte) error {
	var f3 wire.Frame3
	f3.Sign(w.Token, &w.F1, &w.F2)
	if _, err := w.Conn.Write(append(f3.Append(nil), rest...)); err != nil {
		return fmt.Errorf("sending frame 3: %w", err)
	}
	return nil
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
