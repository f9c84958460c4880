package collnet

import (
	"bytes"
	"fmt"
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
	me := self{name: l.ctx.Name(l.dev), rank: rank, n: n}
	c := &Comm{self: me, ctx: l.ctx, dev: l.dev, regions: regions{self: me}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	for range choose.TracksOf(n) {
		c.tracks = append(c.tracks, &track{self: me, sends: make([]Link, n), receives: make([]Link, n)})
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

// about is what c knows of its paths.
func (c *Comm) about() string {
	if c.n == 1 {
		return "alone"
	}
	return fmt.Sprintf("a message takes %v, each further one %v, then %.1f GB/s", c.path.Latency.Round(time.Microsecond/10), c.path.Gap.Round(time.Microsecond/10), c.path.Bandwidth/1e9)
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
