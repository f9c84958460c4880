package transport

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
// on which data goes one way. A side whose packet is not acknowledged breaks off,
// and the connecting one tries again with smaller packets, of both sides.

// narrowMTUs are tried in turn where larger packets are lost: Ethernet's, that of
// most tunnels over it, and the smallest of IPv6.
var narrowMTUs = []int{1500, 1400, 1280}

const (
	narrowFor  = 5 * time.Minute // what was found out holds for so long
	guardEvery = 200 * time.Millisecond
	guardLimit = 1200 * time.Millisecond // without acknowledgement
	guardTries = 3                       // repetitions: a path may lose some packets of any size
)

// narrow are the paths on which large packets have been lost.
type narrow struct {
	mu    sync.Mutex
	paths map[hopEnds]*narrowPath // protected by mu
}

// hopEnds are the addresses between which a path runs; local is zero where the
// kernel chooses.
type hopEnds struct{ local, remote netip.Addr }

func (p path) ends() hopEnds { return hopEnds{p.local, p.remote.Addr()} }

type narrowPath struct {
	found time.Time
	wide  int  // the MTU whose packets are lost
	mtu   int  // used instead
	said  bool // that it works
}

// of is what is known of a path; false: nothing.
func (n *narrow) of(p path) (narrowPath, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.paths[p.ends()]
	if x == nil || time.Since(x.found) > narrowFor {
		return narrowPath{}, false
	}
	return *x, true
}

// apply limits the packets of a connection along p.
func (n *narrow) apply(p path, o tcp.Options) tcp.Options {
	if x, ok := n.of(p); ok {
		header := 40 // of IPv4 and TCP
		if p.remote.Addr().Unmap().Is6() {
			header = 60
		}
		if most := x.mtu - header; o.MaxSeg == 0 || o.MaxSeg > most {
			o.MaxSeg = most
		}
	}
	return o
}

// smaller takes in that packets were lost, and reports whether there is a size
// left to try. Of many connects along the path each may find out the same.
func (n *narrow) smaller(lost *narrowError) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	x := n.paths[lost.path.ends()]
	if x == nil || time.Since(x.found) > narrowFor {
		x = &narrowPath{wide: lost.mtu, mtu: lost.mtu}
	}
	if x.mtu < lost.mtu {
		return true
	}
	for _, mtu := range narrowMTUs {
		if mtu < x.mtu {
			x.mtu, x.found = mtu, time.Now()
			if n.paths == nil {
				n.paths = map[hopEnds]*narrowPath{}
			}
			n.paths[lost.path.ends()] = x
			return true
		}
	}
	delete(n.paths, lost.path.ends())
	return false
}

// passed says once that a path works with smaller packets.
func (n *narrow) passed(p path, c *conn, dev string, peer func() string, log report.Logger) {
	n.mu.Lock()
	x := n.paths[p.ends()]
	say := x != nil && !x.said
	if say {
		x.said = true
	}
	n.mu.Unlock()
	if say {
		log.Warn("%s -> %s: packets of MTU %d are lost between %s and %s, those of %d pass and are used: transfers are slower than they could be; a port or tunnel between has a smaller MTU than the hosts: give it %d, or these hosts' interfaces %d",
			dev, peer(), x.wide, c.local().Addr(), c.remote().Addr(), x.mtu, x.wide, x.mtu)
	}
}

// narrowError says that packets of full size were lost on a path.
type narrowError struct {
	path path
	mtu  int
}

func (e *narrowError) Error() string {
	return fmt.Sprintf("packets of MTU %d are lost on the path to %s, smaller ones pass: a port or tunnel on it has a smaller MTU than the hosts", e.mtu, e.path)
}

// guard watches a handshake's packets of full size on one connection, from a timer
// that few handshakes live to see.
type guard struct {
	conn *conn
	log  report.Logger
	mtu  int // of the packets

	mu     sync.Mutex
	timer  *time.Timer // protected by mu, as all below
	looked time.Time
	seen   stuck
	over   bool
	lost   bool
}

// fill answers pads for a packet of full size on c, and who watches it. What stays
// within this host crosses no port.
func (c *Core) fill(k *conn, p path) ([]byte, *guard) {
	g := &guard{conn: k, log: c.cfg.Log, looked: time.Now()}
	if c.local.has(p.remote.Addr()) {
		return nil, g
	}
	flow, err := k.flow()
	if err != nil {
		return nil, g
	}
	g.mtu = flow.MTU
	if x, ok := c.narrow.of(p); ok {
		g.mtu = x.mtu
	}
	g.mu.Lock()
	g.timer = time.AfterFunc(guardEvery, g.check)
	g.mu.Unlock()
	return (&wire.Pad{}).Append(nil, flow.Segment), g
}

// stop ends the watch, and reports whether packets were lost.
func (g *guard) stop() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over = true; g.timer != nil {
		g.timer.Stop()
	}
	return g.lost
}

func (g *guard) check() {
	defer task.Rescue(g.log, "handshake", task.Nobody)
	g.mu.Lock()
	defer g.mu.Unlock()
	flow, err := g.conn.flow()
	if err != nil || g.over {
		return // it is closed, and what it was for is over
	}
	now := time.Now()
	g.seen.saw(&flow, min(now.Sub(g.looked), 2*guardEvery), guardLimit)
	g.looked = now
	if g.seen.still < guardLimit || !flow.Lost() || flow.Under && flow.Repeats < guardTries {
		g.timer.Reset(guardEvery)
		return
	}
	g.lost = true
	g.conn.SetLinger(0) // the peer must hear of it past what is stuck: by a reset, which is small
	g.conn.SetDeadline(time.Unix(1, 0))
}

// judge tells an error of a handshake that met a path's limit from others. The
// other side resets the connection when its own packets are lost.
func (g *guard) judge(p path, err error) error {
	if lost := g.stop(); err != nil && (lost || g.mtu > 0 && errors.Is(err, syscall.ECONNRESET)) {
		return &narrowError{p, g.mtu}
	}
	return err
}
