package ranks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// JoinOptions say where the ranks of several machines meet.
type JoinOptions struct {
	Addr  string // host:port of rank 0
	Rank  int
	Size  int
	Token string
	Limit time.Duration                 // for all ranks to come, and for each Gather
	Note  func(format string, a ...any) // what is being waited for
}

// Join makes a rank's group over TCP: rank 0 listens at Addr, the others dial it.
func Join(ctx context.Context, o JoinOptions) (Group, error) {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	g := &joined{o: o, failed: make(chan struct{}), in: make([]chan []byte, o.Size), peers: make([]*wire, o.Size)}
	for i := range g.in {
		g.in[i] = make(chan []byte, 4)
	}
	var err error
	if o.Rank == 0 {
		err = g.listen(ctx)
	} else {
		err = g.dial(ctx)
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

type joined struct {
	o      JoinOptions
	peers  []*wire       // rank 0: every other rank; else only [0]
	in     []chan []byte // by rank: what it said
	failed chan struct{}

	mu    sync.Mutex // protects cause, and writes of abort frames
	cause *AbortError
}

func (g *joined) Rank() int               { return g.o.Rank }
func (g *joined) Size() int               { return g.o.Size }
func (g *joined) Failed() <-chan struct{} { return g.failed }

// Leave says that this rank is through, and ends its connections.
func (g *joined) Leave() {
	for _, w := range g.peers {
		if w != nil {
			w.SetWriteDeadline(time.Now().Add(time.Second))
			_ = w.writeFrame('B', nil) // who is gone need not be told
		}
	}
	g.Close()
}

// Close ends the connections.
func (g *joined) Close() {
	for _, w := range g.peers {
		if w != nil {
			w.Conn.Close()
		}
	}
}

func (g *joined) listen(ctx context.Context) error {
	l, err := net.Listen("tcp", g.o.Addr)
	if errors.Is(err, syscall.EADDRNOTAVAIL) { // the others reach us by an address that is translated
		if _, port, e := net.SplitHostPort(g.o.Addr); e == nil {
			l, err = net.Listen("tcp", ":"+port)
		}
	}
	if err != nil {
		return fmt.Errorf("rank 0 listens for the others at %s: %w (--join names an address and port of this machine)", g.o.Addr, err)
	}
	defer l.Close()
	until := time.Now().Add(g.o.Limit)
	l.(*net.TCPListener).SetDeadline(until)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var mu sync.Mutex // protects peers while ranks arrive
	came := make(chan struct{}, g.o.Size)
	judge := func(rank, size int) string {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case size != g.o.Size:
			return fmt.Sprintf("rank %d says --nranks %d, rank 0 says %d", rank, size, g.o.Size)
		case rank < 1 || rank >= size:
			return fmt.Sprintf("there is no rank %d of %d to come", rank, size)
		case g.peers[rank] != nil:
			return fmt.Sprintf("rank %d is here already: two ranks have the same number", rank)
		}
		return ""
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				w := newWire(c)
				rank, err := w.receive(g.o.Token, judge)
				if err != nil {
					g.o.Note("%s: %v", c.RemoteAddr(), err)
					c.Close()
					return
				}
				mu.Lock()
				taken := g.peers[rank] != nil
				if !taken {
					g.peers[rank] = w
				}
				mu.Unlock()
				if taken {
					c.Close()
					return
				}
				came <- struct{}{}
			}()
		}
	}()
	for n := 1; n < g.o.Size; n++ {
		g.o.Note("waiting for %d of %d ranks at %s", g.o.Size-n, g.o.Size, l.Addr())
		select {
		case <-came:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(until)):
			mu.Lock()
			defer mu.Unlock()
			var missing []string
			for r := 1; r < g.o.Size; r++ {
				if g.peers[r] == nil {
					missing = append(missing, fmt.Sprint(r))
				}
			}
			return fmt.Errorf("rank 0 waited %v at %s: no word from rank %s", g.o.Limit, l.Addr(), strings.Join(missing, ", "))
		}
	}
	for r := 1; r < g.o.Size; r++ {
		go g.pump(r, g.peers[r])
	}
	return nil
}

func (g *joined) dial(ctx context.Context) error {
	until := time.Now().Add(g.o.Limit)
	var last error
	for time.Now().Before(until) && ctx.Err() == nil {
		d := net.Dialer{Timeout: 3 * time.Second}
		c, err := d.DialContext(ctx, "tcp", g.o.Addr)
		if err == nil {
			w := newWire(c)
			if err = w.greet(g.o.Token, g.o.Rank, g.o.Size); err == nil {
				g.peers[0] = w
				go g.pump(0, w)
				return nil
			}
			c.Close()
			var r refusal
			if errors.As(err, &r) {
				return err
			}
		}
		if last == nil {
			g.o.Note("waiting for rank 0 at %s (%v)", g.o.Addr, err)
		}
		last = err
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("rank %d waited %v for rank 0 at %s: %w", g.o.Rank, g.o.Limit, g.o.Addr, errors.Join(last, ctx.Err()))
}

// pump turns what a peer sends into frames, and its end into a failure.
func (g *joined) pump(rank int, w *wire) {
	for {
		kind, body, err := w.readFrame()
		if err != nil {
			g.fail(&AbortError{rank, "its connection ended (" + err.Error() + ")"}, true)
			return
		}
		if kind == 'B' {
			return
		}
		if kind == 'X' {
			who, text, _ := bytes.Cut(body, []byte{0})
			from := rank
			fmt.Sscan(string(who), &from)
			g.fail(&AbortError{from, string(text)}, true)
			return
		}
		select {
		case g.in[rank] <- body:
		case <-g.failed:
			return
		}
	}
}

// fail records the first cause; rank 0 passes it on.
func (g *joined) fail(cause *AbortError, relay bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil {
		return
	}
	g.cause = cause
	close(g.failed)
	if !relay || g.o.Rank == 0 {
		body := fmt.Appendf(nil, "%d\x00%s", cause.Rank, cause.Cause)
		for _, w := range g.peers {
			if w != nil {
				w.SetWriteDeadline(time.Now().Add(time.Second))
				_ = w.writeFrame('X', body[:min(len(body), 4096)]) // a dead peer cannot be told
			}
		}
	}
}

func (g *joined) Abort(cause error) { g.fail(&AbortError{g.o.Rank, cause.Error()}, false) }

func (g *joined) await(rank int, name string) ([]byte, error) {
	t := time.NewTimer(g.o.Limit)
	defer t.Stop()
	select {
	case body := <-g.in[rank]:
		return body, nil
	case <-g.failed:
		select {
		case body := <-g.in[rank]: // it came before the failure
			return body, nil
		default:
		}
		return nil, g.cause
	case <-t.C:
		return nil, fmt.Errorf("%s: no word from rank %d within %v", name, rank, g.o.Limit)
	}
}

func (g *joined) Gather(name string, mine []byte) ([][]byte, error) {
	if g.o.Rank != 0 {
		if err := g.peers[0].writeFrame('G', append(append([]byte(name), 0), mine...)); err != nil {
			return nil, fmt.Errorf("%s: rank 0: %w", name, err)
		}
		body, err := g.await(0, name)
		if err != nil {
			return nil, err
		}
		return unpackParts(body, g.o.Size)
	}
	parts := make([][]byte, g.o.Size)
	parts[0] = mine
	for r := 1; r < g.o.Size; r++ {
		said, err := g.await(r, name)
		if err != nil {
			return nil, err
		}
		at, body, _ := bytes.Cut(said, []byte{0})
		if string(at) != name {
			return nil, fmt.Errorf("rank %d is at %q while rank 0 is at %q: do all run the same weft?", r, at, name)
		}
		parts[r] = body
	}
	all := packParts(parts)
	for r := 1; r < g.o.Size; r++ {
		if err := g.peers[r].writeFrame('A', all); err != nil {
			return nil, fmt.Errorf("%s: rank %d: %w", name, r, err)
		}
	}
	return parts, nil
}
