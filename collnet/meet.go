package collnet

import (
	"fmt"
	"strings"

	"weft/internal/report"
)

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
			return false, j.c.errorf(report.Peer, "connect", "more connections came than %d ranks make", len(j.peers))
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
		if err = j.room(k.link); err != nil {
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
	if err = j.room(h.link); err != nil {
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

// room makes the memory for what is sent and received meanwhile, with the first link.
func (j *joining) room(l Link) error {
	if j.mem.bytes != nil {
		return nil
	}
	return j.mem.grow(l, max((len(j.calls)+1)*slot+len(j.c.tracks)*slot, 2*probeBytes+j.c.n*factsSize(j.c.n)))
}

// hello is what this rank says on a connection to another.
func (j *joining) hello(k *call) Buffer {
	place := (len(j.calls) + 1 + k.track) * slot
	j.greeting(k.track).put(j.mem.bytes[place : place+slot])
	return j.mem.at(place, slot)
}

// greeting is the hello of this rank on a track.
func (j *joining) greeting(track int) hello {
	c := j.c
	return hello{version: helloVersion, n: uint64(c.n), rank: uint64(c.rank), track: uint64(track), tracks: uint64(len(c.tracks)), chunk: uint64(c.ctx.Chunk)}
}

// meet judges the hello of a connection, and gives it its place.
func (j *joining) meet(h *hail, size int) error {
	c := j.c
	theirs, ok := readHello(j.mem.bytes[h.place*slot:][:slot])
	if size != slot || !ok {
		return c.errorf(report.Peer, "connect", "a connection that no collective made").With(h.link.Peer())
	}
	if wrong, remedy := j.greeting(0).refuse(theirs); wrong != "" {
		return c.errorf(report.Usage, "connect", "%s", wrong).With(h.link.Peer()).Try("%s", remedy)
	}
	place := &c.tracks[theirs.track].receives[theirs.rank]
	if *place != nil {
		return c.errorf(report.Usage, "connect", "a second connection of rank %d on track %d", theirs.rank, theirs.track).With(h.link.Peer())
	}
	*place, h.link = h.link, nil
	return nil
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
