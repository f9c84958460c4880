package ranks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"weft/internal/beat"
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
	Every    time.Duration                 // how often; default beat.Patience
}

// Join makes a rank's group over TCP: rank 0 listens, the others dial its addresses.
func Join(ctx context.Context, o JoinOptions) (Group, error) {
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	if o.Every == 0 {
		o.Every = beat.Patience
	}
	g := &joined{o: o, failed: make(chan struct{}), all: make(chan struct{}), verdict: make(chan string, 1), in: make([]chan []byte, o.Size), peers: make([]*wire, o.Size)}
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
		g.Abort(err)
		g.Close()
		return nil, err
	}
	return g, nil
}

type joined struct {
	o       JoinOptions
	peers   []*wire       // rank 0: every other rank; else only [0]
	in      []chan []byte // by rank: what it said
	failed  chan struct{}
	all     chan struct{} // rank 0: every rank has told its cause
	verdict chan string   // other ranks: what rank 0 makes of it

	mu    sync.Mutex // protects peers while ranks arrive, what follows, and writes of abort frames
	cause *AbortError
	told  []*Failure // rank 0: of every rank, in the order of their coming
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
	if g.o.Rank != 0 {
		defer close(g.verdict)
	}
	for {
		kind, body, err := w.readFrame()
		switch {
		case err != nil:
			g.fail(&Failure{Rank: rank, Host: w.machine(), Kind: Gone, Text: "its connection to " + g.name() + " ended (" + err.Error() + ")"})
			return
		case kind == 'B':
			return
		case kind == 'X':
			f := &Failure{Rank: rank, Text: string(body)}
			_ = json.Unmarshal(body, f) // else its text remains
			g.fail(f)
		case kind == 'V':
			g.verdict <- string(body)
			return
		default:
			select {
			case g.in[rank] <- body:
			case <-g.failed: // nobody will ask
			}
		}
	}
}

func (g *joined) name() string { return fmt.Sprintf("rank %d", g.o.Rank) }

// machine is the address of a rank that cannot say its name any more.
func (w *wire) machine() string {
	host, _, _ := net.SplitHostPort(w.RemoteAddr().String())
	return host
}

// fail records what a rank has told; the first cause fails this rank, and rank 0 passes it on.
func (g *joined) fail(f *Failure) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.told, func(o *Failure) bool { return o.Rank == f.Rank }) {
		return
	}
	g.told = append(g.told, f)
	if len(g.told) == g.o.Size {
		close(g.all)
	}
	if g.cause == nil {
		g.cause = &AbortError{f}
		close(g.failed)
		if g.o.Rank == 0 {
			g.tell('X', encode(f), func(r int) bool { return r != f.Rank })
		}
	}
}

// tell sends a frame to the peers, without regard to those that are gone. The caller holds mu.
func (g *joined) tell(kind byte, body []byte, to func(rank int) bool) {
	for r, w := range g.peers {
		if w != nil && to(r) {
			w.SetWriteDeadline(time.Now().Add(time.Second))
			_ = w.writeFrame(kind, body)
		}
	}
}

func encode(f *Failure) []byte {
	short := *f
	short.Text = short.Text[:min(len(short.Text), 64<<10)]
	b, err := json.Marshal(short)
	if err != nil { // numbers and strings can be written
		panic(err)
	}
	return b
}

// Abort tells rank 0 why this rank ends, or, on rank 0, every other rank.
func (g *joined) Abort(cause error) {
	f := failureOf(g.o.Rank, cause)
	g.fail(f)
	if g.o.Rank != 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tell('X', encode(f), func(int) bool { return true })
	}
}

// The limits of the wait for the other ranks' causes: their hosts are killed some seconds after the first failure.
const (
	collectLimit = killAfter + 7*time.Second
	verdictLimit = collectLimit + 5*time.Second
)

// Verdict waits for the causes of all ranks and tells every rank what they come to. A rank that rank 0 tells nothing
// judges by what it knows itself.
func (g *joined) Verdict() (text string, told bool) {
	if g.o.Rank == 0 {
		select {
		case <-g.all:
		case <-time.After(collectLimit):
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		text = verdict(g.o.Size, g.told)
		g.tell('V', []byte(text), func(int) bool { return true })
		return text, true
	}
	select {
	case text, told = <-g.verdict:
		if told {
			return text, true
		}
	case <-time.After(verdictLimit):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return verdict(g.o.Size, g.told), false
}

// await is the next that a rank says. Rank 0, which asks one after the other, says every so often which are missing.
func (g *joined) await(rank int, name string) ([]byte, error) {
	t, say := time.NewTimer(g.o.Limit), time.NewTicker(g.o.Every)
	defer t.Stop()
	defer say.Stop()
	for {
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
		case <-say.C:
			if g.o.Rank == 0 {
				g.o.Note("waiting for %s (%s)", g.silent(rank), name)
			}
		case <-t.C:
			return nil, &lateError{name, g.silent(rank), g.o.Limit}
		}
	}
}

// silent names the ranks from this one on that have said nothing.
func (g *joined) silent(from int) string {
	return list(len(g.in), func(r int) bool { return r >= from && g.peers[r] != nil && len(g.in[r]) == 0 })
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
