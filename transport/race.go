package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"weft/transport/rdma"
	"weft/transport/tcp"
	"weft/transport/wire"
)

const (
	attemptEvery = 200 * time.Millisecond // head start of each address over the next
	attemptMore  = 800 * time.Millisecond // further head start of one whose host has answered
	attemptLimit = 5 * time.Second        // from dialling to frame 2
)

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
		if k, err = dial(ctx, p, o, !c.local.has(p.remote.Addr())); err == nil {
			break
		}
		if !exhausted(err) || !c.files.raise(c.cfg.Log) {
			return nil, err
		}
	}
	if connected != nil {
		connected.Store(true)
	}
	w := &won{core: c, conn: k, path: p, token: &h.Token}
	w.f1 = wire.Frame1{Version: wire.Version, Role: role, ListenID: h.ListenID, Nonce: newNonce()}
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
	frame, err := rd.Next()
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

// paths lists the ways to the handle's addresses: first from the device that
// NCCL asked for, its own subnets before others, then from wherever the
// kernel's routes lead.
func paths(dev *tcp.Device, h *wire.Handle) []path {
	var out []path
	eps := slices.Clone(h.Addrs)
	slices.SortStableFunc(eps, func(a, b wire.Endpoint) int {
		near := func(e wire.Endpoint) int {
			if dev.Reaches(e.Addr) {
				return 0
			}
			return 1
		}
		return near(a) - near(b)
	})
	for _, e := range eps {
		remote := netip.AddrPortFrom(rdma.Scoped(e.Addr, dev.IfIndex), e.Port)
		if local, ok := sourceFor(dev, e.Addr); ok {
			out = append(out, path{remote: remote, local: local, dev: dev})
		}
	}
	for _, e := range eps {
		if !e.Addr.IsLinkLocalUnicast() {
			out = append(out, path{remote: e.AddrPort()})
		}
	}
	return out
}

// sourceFor picks the device's address to reach remote from: the one in its
// subnet, else the first of its family and scope.
func sourceFor(dev *tcp.Device, remote netip.Addr) (netip.Addr, bool) {
	best := -1
	for i, p := range dev.Addrs {
		a := p.Addr()
		if a.Is4() != remote.Is4() || (a.Is6() && a.IsLinkLocalUnicast() != remote.IsLinkLocalUnicast()) {
			continue
		}
		if p.Contains(remote) {
			best = i
			break
		}
		if best < 0 {
			best = i
		}
	}
	if best < 0 {
		return netip.Addr{}, false
	}
	return dev.Addr(best), true
}

type outcome struct {
	w    *won
	path path
	err  error
}

// race tries the paths, each a head start after the one before; a failure
// starts the next at once. The first valid frame 2 wins and ends the others.
// The first path nearly always wins, so it runs in the caller's goroutine.
func (c *Core) race(ctx context.Context, h *wire.Handle, ways []path, o tcp.Options) (*won, error) {
	first, endFirst := context.WithCancel(ctx)
	defer endFirst()
	others, endOthers := context.WithCancel(ctx)
	defer endOthers()
	late := make(chan outcome, 1)
	var connected atomic.Bool
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		if connected.Swap(false) { // in a storm a second attempt of everybody would only make it worse
			timer.Reset(attemptMore)
			return
		}
		w, err := c.raceOn(others, h, ways[1:], o)
		if err == nil {
			endFirst()
		}
		late <- outcome{w: w, err: err}
	})
	timer.Reset(attemptEvery)
	w, err := c.attempt(first, h, ways[0], wire.RoleComm, o, &connected)
	if timer.Stop() { // the first ended within its head start
		if err == nil {
			return w, nil
		}
		w, rest := c.raceOn(others, h, ways[1:], o)
		return w, lostAlso(ways[0], err, rest)
	}
	if err == nil {
		endOthers()
		if r := <-late; r.w != nil {
			r.w.conn.Close()
		}
		return w, nil
	}
	r := <-late
	return r.w, lostAlso(ways[0], err, r.err)
}

// raceOn races paths in goroutines of their own.
func (c *Core) raceOn(ctx context.Context, h *wire.Handle, ways []path, o tcp.Options) (*won, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan outcome)
	begun, running := 0, 0
	start := func() {
		p := ways[begun]
		begun, running = begun+1, running+1
		go func() {
			w, err := c.attempt(ctx, h, p, wire.RoleComm, o, nil)
			select {
			case results <- outcome{w, p, err}:
			case <-ctx.Done():
				if w != nil {
					w.conn.Close()
				}
			}
		}()
	}
	next := time.NewTicker(attemptEvery)
	defer next.Stop()
	lost := &lostRace{}
	for running > 0 || begun < len(ways) {
		if running == 0 {
			start()
			next.Reset(attemptEvery)
		}
		select {
		case r := <-results:
			running--
			if r.err == nil {
				return r.w, nil
			}
			lost.lost = append(lost.lost, r)
		case <-next.C:
		case <-ctx.Done():
			lost.end = context.Cause(ctx)
			return nil, lost
		}
		if begun < len(ways) {
			start()
			next.Reset(attemptEvery)
		}
	}
	return nil, lost
}

// lostAlso puts the first path before the others in the error, if they lost too.
func lostAlso(p path, err, rest error) error {
	var lost *lostRace
	if rest == nil || !errors.As(rest, &lost) {
		return rest
	}
	lost.lost = append([]outcome{{path: p, err: err}}, lost.lost...)
	return lost
}

// lostRace is why no path led to the listener.
type lostRace struct {
	lost []outcome
	end  error
}

func (e *lostRace) Error() string {
	var parts []string
	for _, l := range e.lost {
		parts = append(parts, fmt.Sprintf("%s: %v", l.path, short(l.err)))
	}
	if e.end != nil {
		parts = append(parts, e.end.Error())
	}
	return strings.Join(parts, ", ")
}

func (e *lostRace) Unwrap() []error {
	var all []error
	for _, l := range e.lost {
		all = append(all, l.err)
	}
	return append(all, e.end)
}

// short is the innermost text of a network error: the addresses are said already.
func short(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// again reports whether another round may go better: the peer may not listen
// yet or may be flooded, a route may come back.
func again(err error) bool {
	for _, target := range []error{syscall.ECONNREFUSED, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EAGAIN, syscall.EINTR, syscall.ECONNRESET, io.EOF, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
