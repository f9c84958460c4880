package rendezvous

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// room holds the connections that others have opened and that carry nothing yet.
// It bounds what they can make this process hold. A full one closes the oldest
// connection of the address that has the most, so that others get in.
type room struct {
	most   int           // connections
	mostOf int           // of one address
	age    time.Duration // older than this they may be closed for a newcomer

	mu   sync.Mutex
	from map[netip.Addr]*list.List // of *place, oldest first; protected by mu, as all below
	n    int
	left chan struct{} // a place became free
}

const mostStrangers = 256 // connections that have not proven anything

// The two rooms of a process. What is proven weighs up to 20 KiB.
func roomForStrangers() *room { return newRoom(mostStrangers, mostStrangers, 100*time.Millisecond) } // no full frame 1 yet
func roomForProven() *room    { return newRoom(4096, 1024, time.Second) }                            // know the token, and carry no comm

// place is a connection's in a room.
type place struct {
	room  *room
	conn  *Conn
	from  netip.Addr
	since time.Time
	at    *list.Element // nil once it left
}

func newRoom(most, mostOf int, age time.Duration) *room {
	return &room{most: most, mostOf: mostOf, age: age, from: map[netip.Addr]*list.List{}, left: make(chan struct{}, 1)}
}

// enter takes c in. A full room makes it wait until there is a place, or until a
// connection is old enough to be closed; nil: c was closed meanwhile.
func (r *room) enter(c *Conn) *place {
	for {
		p, wait := r.admit(c, r.age)
		if p != nil {
			return p
		}
		t := time.NewTimer(wait)
		select {
		case <-r.left:
		case <-t.C:
		case <-c.Life.Done():
			t.Stop()
			return nil
		}
		t.Stop()
	}
}

// push takes c in without waiting: for the host's threads.
func (r *room) push(c *Conn) *place {
	p, _ := r.admit(c, 0)
	return p
}

// admit gives c a place, or says how long it takes until one can be had.
func (r *room) admit(c *Conn, age time.Duration) (*place, time.Duration) {
	p := &place{room: r, conn: c, from: c.Remote().Addr(), since: time.Now()}
	r.mu.Lock()
	old := r.inTheWay(p.from)
	if old != nil {
		if wait := age - p.since.Sub(old.since); wait > 0 {
			r.mu.Unlock()
			return nil, wait
		}
		r.remove(old)
	}
	own := r.from[p.from]
	if own == nil {
		own = list.New()
		r.from[p.from] = own
	}
	p.at = own.PushBack(p)
	r.n++
	r.mu.Unlock()
	if old != nil {
		old.conn.Close()
	}
	return p, 0
}

// inTheWay is what must go before another connection from an address has room;
// nil: nothing. Called with mu held.
func (r *room) inTheWay(from netip.Addr) *place {
	own := r.from[from]
	switch {
	case own != nil && own.Len() >= r.mostOf:
	case r.n >= r.most:
		for _, l := range r.from {
			if own == nil || l.Len() > own.Len() {
				own = l
			}
		}
	default:
		return nil
	}
	return own.Front().Value.(*place)
}

// leave gives a place back: its connection has found its owner, or was closed.
func (p *place) leave() {
	r := p.room
	r.mu.Lock()
	r.remove(p)
	r.mu.Unlock()
	select {
	case r.left <- struct{}{}:
	default:
	}
}

func (r *room) remove(p *place) {
	if p.at == nil {
		return
	}
	own := r.from[p.from]
	own.Remove(p.at)
	p.at = nil
	r.n--
	if own.Len() == 0 {
		delete(r.from, p.from)
	}
}
