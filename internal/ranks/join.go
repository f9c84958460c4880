package ranks

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// JoinOptions say where the ranks of several machines meet.
type JoinOptions struct {
	Addrs    []string     // host:port of rank 0, one or several to try
	Listener net.Listener // rank 0's, if it listens already
	By       string       // what names Addrs, such as --join
	Rank     int
	Size     int
	Token    string
	Limit    time.Duration                 // for all ranks to come, and for each Gather
	Note     func(format string, a ...any) // what is being waited for
	Every    time.Duration                 // how often; default Patience
}

// Join makes a rank's group over TCP: rank 0 listens, the others dial its addresses.
func Join(ctx context.Context, o JoinOptions) (Group, error) {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Every == 0 {
		o.Every = Patience
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
