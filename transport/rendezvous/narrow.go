package rendezvous

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// A path may carry small packets only: two hosts of MTU 9000 and a port of 1500
// between them, which drops what is larger and says nothing. A handshake with
// small messages passes there, and data never arrives. So each side's hello comes
// in a packet of full size, and so does the message that joins a further stream,
// on which data goes one way; the frame before it comes in a small one, which shows
// that the path carries those. A side whose large packet is not acknowledged breaks
// off, and the connecting one tries again with smaller packets, of both sides.

// narrowMTUs are tried in turn where larger packets are lost: Ethernet's, that of
// most tunnels over it, and the smallest of IPv6.
var narrowMTUs = []int{1500, 1400, 1280}

const (
	narrowFor  = 5 * time.Minute // what was found out holds for so long
	guardEvery = 200 * time.Millisecond
	guardLimit = 1200 * time.Millisecond // without acknowledgement
	guardTries = 3                       // repetitions: a path may lose some packets of any size
)

// NarrowPaths are those on which large packets have been lost.
type NarrowPaths struct {
	mu    sync.Mutex
	paths map[hop]*narrowPath // protected by mu
}

// hop are the addresses between which a path runs; local is zero where the
// kernel chooses.
type hop struct{ local, remote netip.Addr }

func (p Path) hop() hop { return hop{p.local, p.Remote.Addr()} }

type narrowPath struct {
	found time.Time
	wide  int  // the MTU whose packets are lost
	MTU   int  // used instead
	said  bool // that it works
}

// of is what is known of a path; false: nothing.
func (n *NarrowPaths) of(p Path) (narrowPath, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.paths[p.hop()]
	if x == nil || time.Since(x.found) > narrowFor {
		return narrowPath{}, false
	}
	return *x, true
}

// apply limits the packets of a connection along p.
func (n *NarrowPaths) apply(p Path, o tcp.Options) tcp.Options {
	if x, ok := n.of(p); ok {
		header := 40 // of IPv4 and TCP
		if p.Remote.Addr().Unmap().Is6() {
			header = 60
		}
		if most := x.MTU - header; o.MaxSeg == 0 || o.MaxSeg > most {
			o.MaxSeg = most
		}
	}
	return o
}

// Smaller takes in that packets were lost, and reports whether there is a size
// left to try. Of many connects along the path each may find out the same.
func (n *NarrowPaths) Smaller(lost *NarrowError) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.paths[lost.Path.hop()]
	if x == nil || time.Since(x.found) > narrowFor {
		x = &narrowPath{wide: lost.MTU, MTU: lost.MTU}
	}
	if x.MTU < lost.MTU {
		return true
	}
	for _, mtu := range narrowMTUs {
		if mtu < x.MTU {
			x.MTU, x.found = mtu, time.Now()
			if n.paths == nil {
				n.paths = map[hop]*narrowPath{}
			}
			n.paths[lost.Path.hop()] = x
			return true
		}
	}
	delete(n.paths, lost.Path.hop())
	return false
}

// Passed says once that a path works with smaller packets.
func (n *NarrowPaths) Passed(p Path, c *Conn, dev string, peer func() string, log report.Logger) {
	n.mu.Lock()
	x := n.paths[p.hop()]
	say := x != nil && !x.said
	if say {
		x.said = true
	}
	n.mu.Unlock()
	if say {
		log.Warn("%s -> %s: packets of MTU %d are lost between %s and %s, those of %d pass and are used: transfers are slower than they could be; a port or tunnel between has a smaller MTU than the hosts: give it %d, or these hosts' interfaces %d [WEFT-060 WEFT-165 WEFT-170]",
			dev, peer(), x.wide, c.Local().Addr(), c.Remote().Addr(), x.MTU, x.wide, x.MTU)
	}
}

// NarrowError says that packets of full size were lost on a path.
type NarrowError struct {
	Path Path
	MTU  int
}

func (e *NarrowError) Error() string {
	return fmt.Sprintf("packets of MTU %d are lost on the path to %s, smaller ones pass: a port or tunnel on it has a smaller MTU than the hosts", e.MTU, e.Path)
}

func isNarrow(err error) bool {
	lost := (*NarrowError)(nil)
	return errors.As(err, &lost)
}

// Guard looks at a handshake's packets of full size on one connection, from a timer
// that few handshakes live to see.
type Guard struct {
	conn *Conn
	log  report.Logger
	MTU  int // of the packets

	before uint64 // bytes of the connection up to the packets, which come in small ones

	mu     sync.Mutex
	timer  *time.Timer // protected by mu, as all below
	looked time.Time
	seen   tcp.Stuck
	over   bool
	lost   bool
}

// Fill returns pads for a packet of full size on k, and its guard; before is how many bytes
// are written before them, in a small packet. What stays within this host crosses no port.
func (n *Network) Fill(k *Conn, p Path, before int) ([]byte, *Guard) {
	g := &Guard{conn: k, log: n.log, looked: time.Now()}
	if n.Local.has(p.Remote.Addr()) {
		return nil, g
	}
	flow, err := k.flow()
	if err != nil {
		return nil, g
	}
	g.MTU, g.before = flow.MTU, flow.Acked+uint64(before)
	if x, ok := n.Narrow.of(p); ok {
		g.MTU = x.MTU
	}
	g.mu.Lock()
	g.timer = time.AfterFunc(guardEvery, g.check)
	g.mu.Unlock()
	return (&wire.Pad{}).Append(nil, flow.Segment), g
}

// Stop ends the guard's work, and reports whether packets were lost.
func (g *Guard) Stop() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over = true; g.timer != nil {
		g.timer.Stop()
	}
	return g.lost
}

func (g *Guard) check() {
	defer task.Rescue(g.log, "handshake", task.Nobody)
	g.mu.Lock()
	defer g.mu.Unlock()
	flow, err := g.conn.flow()
	if err != nil || g.over {
		return // it is closed, and what it was for is over
	}
	now := time.Now()
	g.seen.Saw(&flow, min(now.Sub(g.looked), 2*guardEvery), guardLimit)
	g.looked = now
	if !g.loses(&flow) {
		g.timer.Reset(guardEvery)
		return
	}
	g.lost = true
	g.conn.SetLinger(0) // the peer must hear of it past what is stuck: by a reset, which is small
	g.conn.SetDeadline(time.Unix(1, 0))
}

// loses reports whether the path carries small packets and no large ones. g.mu is held.
func (g *Guard) loses(now *tcp.Flow) bool {
	return g.seen.Still >= guardLimit && now.Acked >= g.before && now.Lost() && (!now.Under || now.Repeats >= guardTries)
}

// Judge tells an error of a handshake that met a path's limit from others. The
// other side resets the connection when its own packets are lost.
func (g *Guard) Judge(p Path, err error) error {
	if lost := g.Stop(); lost || g.MTU > 0 && errors.Is(err, syscall.ECONNRESET) {
		return &NarrowError{p, g.MTU}
	}
	return err
}
