package transport

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

// won is an attempt whose listener proved that it knows the token. Frame 3 has
// not been sent yet.
type won struct {
	core  *Core
	conn  *conn
	path  path
	token *wire.Token
	f1    wire.Frame1
	f2    wire.Frame2
}

// attempt dials p and exchanges frames 1 and 2 under a nonce of its own; it
// sets connected (unless nil) once the address has answered.
func (c *Core) attempt(ctx context.Context, h *wire.Handle, p path, role wire.Role, o tcp.Options, connected *atomic.Bool) (*won, error) {
	var k *conn
	for {
		var err error
		if k, err = dial(ctx, p, c.narrow.apply(p, o), !c.local.has(p.remote.Addr())); err == nil {
			break
		}
		if !task.Exhausted(err) || !c.files.Raise(c.cfg.Log) {
			return nil, err
		}
	}
	if connected != nil {
		connected.Store(true)
	}
	w := &won{core: c, conn: k, path: p, token: &h.Token}
	w.f1 = wire.Frame1{Version: wire.Version, Role: role, ListenID: h.ListenID, Nonce: wire.NewNonce()}
	w.f1.Sign(w.token)
	k.SetDeadline(time.Now().Add(attemptLimit))
	uncut := cutOnCancel(ctx, k)
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

func (w *won) exchange() error {
	var b [wire.Frame1Size]byte
	if _, err := w.conn.Write(w.f1.Append(b[:0])); err != nil {
		return fmt.Errorf("sending frame 1: %w", err)
	}
	if _, err := io.ReadFull(w.conn, b[:wire.Frame2Size]); err != nil {
		return fmt.Errorf("waiting for frame 2: %w", err)
	}
	var err error
	if w.f2, err = wire.ParseFrame2(b[:wire.Frame2Size]); err != nil {
		return err
	}
	if !w.f2.Verify(w.token, &w.f1) {
		return errImposter
	}
	return nil
}

// confirm sends frame 3 and, in the same write, what follows it.
func (w *won) confirm(rest []byte) error {
	var f3 wire.Frame3
	f3.Sign(w.token, &w.f1, &w.f2)
	if _, err := w.conn.Write(append(f3.Append(nil), rest...)); err != nil {
		return fmt.Errorf("sending frame 3: %w", err)
	}
	return nil
}

// readHello reads the listening side's hello, or why there is none.
func (w *won) readHello(rd *wire.Reader, mine *wire.Hello) (*wire.Hello, error) {
	frame, err := rd.NextPadded()
	if err != nil {
		return nil, fmt.Errorf("reading hello: %w", err)
	}
	h, err := wire.ParseHello(frame)
	if err != nil {
		return nil, err
	}
	if mismatch := versions(mine, &h); mismatch != nil {
		return nil, mismatch
	}
	return &h, nil
}

// rejected is why the listening side ends the handshake.
func (w *won) rejected(peer *wire.Hello, frame []byte) error {
	m, err := wire.ParseReject(frame)
	if err != nil {
		return err
	}
	return report.Errorf(report.Peer, "connect", "refused: %s", m.Reason).With(peerName(peer, w.conn)).Try("look at the peer's log")
}
