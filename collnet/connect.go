package collnet

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"weft/collnet/choose"
	"weft/internal/report"
)

// Connect joins the ranks that have these handles; all of them call it. It blocks, for as long as Options.Timeout at most.
func (l *Listener) Connect(handles [][]byte, rank int) (*Comm, error) {
	if err := l.agree(handles, rank); err != nil {
		return nil, err
	}
	n := len(handles)
	c := &Comm{ctx: l.ctx, dev: l.dev, name: l.ctx.Name(l.dev), rank: rank, n: n, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	c.queue.regions = map[uintptr]*region{}
	for range choose.TracksOf(n) {
		c.tracks = append(c.tracks, &track{c: c, sends: make([]Link, n), receives: make([]Link, n)})
	}
	j := &joining{c: c, door: l.door, deadline: time.Now().Add(l.ctx.Timeout)}
	err := j.join(handles)
	if err == nil {
		err = c.start()
	}
	if err != nil {
		j.giveUp(err)
		return nil, err
	}
	c.ctx.Log.Info(report.Net, "collNet on %s: rank %d of %d, %d connections to each other rank, %s", c.name, rank, n, 2*len(c.tracks), c.about())
	return c, nil
}

// about is what c knows of its paths.
func (c *Comm) about() string {
	if c.n == 1 {
		return "alone"
	}
	return fmt.Sprintf("a message takes %v, each further one %v, then %.1f GB/s", c.path.Latency.Round(time.Microsecond/10), c.path.Gap.Round(time.Microsecond/10), c.path.Bandwidth/1e9)
}

// joining is a connect under way.
type joining struct {
	c        *Comm
	door     Door
	deadline time.Time
	mem      scratch // what is sent and received meanwhile
	measures bool    // naps would count as the path's time
	peers    []int
	strange  []*hail // accepted, and not yet known which rank it is
	calls    []*call
}

// call is a connection to another rank that is being made.
type call struct {
	handle  []byte
	rank    int
	track   int
	link    Link
	request uintptr // of the hello
	done    bool
}

// hail is a connection from a rank that has not said which.
type hail struct {
	link    Link
	place   int // of its hello in the memory
	request uintptr
}

// until calls step until it is done, or the time is over; missing says for whom it waits.
func (j *joining) until(step func() (bool, error), missing func() string) error {
	begin := time.Now()
	for yielded := begin; ; {
		done, err := step()
		if done || err != nil {
			return err
		}
		if time.Now().After(j.deadline) {
			return j.c.errorf(report.Peer, "connect", "rank %d of %d: not connected within %v with %s", j.c.rank, j.c.n, j.c.ctx.Timeout, missing()).
				Try("all ranks must call connect; look at the logs of those, and see WEFT_CONNECT_TIMEOUT")
		}
		switch since := time.Since(begin); {
		case j.measures && since < tick:
			if time.Since(yielded) > glance {
				yield()
				yielded = time.Now()
			}
		case since > spin:
			doze()
		}
	}
}

// join takes the comm to where all ranks know the same.
func (j *joining) join(handles [][]byte) error {
	c := j.c
	c.choices = choose.Of(choose.Fabric{N: c.n, Chunk: int64(c.ctx.Chunk)})
	if c.n == 1 {
		return nil
	}
	j.peers = c.choices.Peers(c.rank)
	for t := range c.tracks {
		for _, r := range j.peers {
			j.calls = append(j.calls, &call{handle: bytes.Clone(handles[r]), rank: r, track: t})
		}
	}
	if err := j.until(j.connect, j.absent); err != nil {
		return err
	}
	if err := j.measure(); err != nil {
		return err
	}
	return j.mem.free()
}

// absent are the ranks that lack a connection.
func (j *joining) absent() string {
	var all []string
	for _, r := range j.peers {
		for _, t := range j.c.tracks {
			if t.sends[r] == nil || t.receives[r] == nil {
				all = append(all, fmt.Sprintf("rank %d", r))
				break
			}
		}
	}
	return strings.Join(all[:min(len(all), 8)], ", ")
}

// connect makes progress with all connections of both directions.
func (j *joining) connect() (bool, error) {
	for _, k := range j.calls {
		if err := j.progress(k); err != nil {
			return false, err
		}
	}
	for {
		l, err := j.door.Accept()
		if err != nil {
			return false, err
		}
		if l == nil {
			break
		}
		if len(j.strange) == len(j.calls) {
			_ = l.Close()
			return false, j.c.errorf(report.Peer, "connect", "more connections come than %d ranks make", len(j.peers))
		}
		j.strange = append(j.strange, &hail{link: l, place: len(j.strange) + 1})
	}
	done := true
	for _, h := range j.strange {
		if err := j.receive(h); err != nil {
			return false, err
		}
		done = done && h.link == nil
	}
	for _, k := range j.calls {
		done = done && k.done
	}
	return done && len(j.strange) == len(j.calls), nil
}

// progress connects, and says hello then.
func (j *joining) progress(k *call) (err error) {
	c := j.c
	if k.link == nil {
		if k.link, err = c.ctx.Net.Connect(c.dev, k.handle); err != nil {
			return c.errorf(report.CauseOf(err), "connect", "rank %d: %w", k.rank, err)
		}
		if k.link == nil {
			return nil
		}
		c.tracks[k.track].sends[k.rank] = k.link
		if err = j.memory(k.link); err != nil {
			return err
		}
	}
	switch {
	case k.done:
		return nil
	case k.request == 0:
		if k.request, err = k.link.Send(j.hello(k), helloTag); err != nil {
			return c.lost("connect", k.rank, k.link, err)
		}
		return nil
	}
	if k.done, _, err = k.link.Test(k.request); err != nil {
		return c.lost("connect", k.rank, k.link, err)
	}
	return nil
}

// receive takes in the hello of a connection.
func (j *joining) receive(h *hail) (err error) {
	if h.link == nil {
		return nil
	}
	if err = j.memory(h.link); err != nil {
		return err
	}
	if h.request == 0 {
		if h.request, err = h.link.Receive(j.mem.at(h.place*slot, slot), helloTag); err != nil {
			return j.unknown(h, err)
		}
		return nil
	}
	done, size, err := h.link.Test(h.request)
	if err != nil {
		return j.unknown(h, err)
	}
	if done {
		return j.meet(h, size)
	}
	return nil
}

func (j *joining) unknown(h *hail, err error) error {
	return j.c.errorf(report.CauseOf(err), "connect", "a rank that has not said which: %w", err).With(h.link.Peer())
}

// memory is there from the first link on.
func (j *joining) memory(l Link) error {
	if j.mem.bytes != nil {
		return nil
	}
	return j.mem.grow(l, max((len(j.calls)+1)*slot+len(j.c.tracks)*slot, 2*probeBytes+j.c.n*factsSize(j.c.n)))
}

// giveUp closes all that was made.
func (j *joining) giveUp(why error) {
	for _, h := range j.strange {
		if h.link != nil {
			h.link.Fail(why)
		}
	}
	for _, l := range j.c.links() {
		l.Fail(why)
	}
	_ = j.mem.free() // what fails here has been said, or is swept with the context
	for _, h := range j.strange {
		if h.link != nil {
			_ = h.link.Close()
		}
	}
	_ = j.c.release()
}
