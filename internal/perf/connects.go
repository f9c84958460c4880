package perf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weft/internal/host"
)

// crowd is one side of connections that are made at once; comms and handles lie in arrays in the host.
type crowd struct {
	*end
	side                   side
	dev                    int
	count                  int64
	handles, listens, comm host.Ptr
}

// mostHandles are what all ranks exchange at once.
const mostHandles = 768 << 10

// measureConnects makes connections, all at once, moves a message on each, and closes them; in each round anew.
func (s *site) measureConnects(batch []Pair) (rows []Row, err error) {
	if n := s.o.Conns * len(batch) * handleRoom; n > mostHandles {
		return nil, fmt.Errorf("--conns %d of %d pairs at once: their handles are %d bytes, and ranks exchange at most %d; ask for %d", s.o.Conns, len(batch), n, mostHandles, mostHandles/len(batch)/handleRoom)
	}
	taken := make([][][]sample, len(s.ends))
	for round := range s.o.Rounds {
		for i := range s.ends {
			if round%2 == 1 {
				i = len(s.ends) - 1 - i
			}
			s.says(fmt.Sprintf("%d connects", s.o.Conns))
			all, err := s.storm(s.ends[i], batch)
			if err != nil {
				return nil, err
			}
			taken[i] = append(taken[i], all)
		}
	}
	for _, p := range batch {
		for i := range s.ends {
			row := Row{Pair: p, Library: i}
			for _, all := range taken[i] {
				row.Wrong += all[p.From.Rank].Bad + all[p.To.Rank].Bad
				row.add(s.o.Test, 0, all[p.From.Rank], all[p.To.Rank])
			}
			row.end(s.o.Test)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// handleRoom is NCCL_NET_HANDLE_MAXSIZE, which the host's arrays have for every table.
const handleRoom = 128

// storm is one round of connects.
func (s *site) storm(e *end, batch []Pair) ([]sample, error) {
	c := &crowd{end: e, count: int64(s.o.Conns)}
	var at int
	c.side, at = s.of(batch)
	var text []byte
	var err error
	peer := 0
	switch c.side {
	case sender:
		c.dev, peer = e.like(s.ends[0], batch[at].From.Device), batch[at].To.Rank
		err = c.alloc()
	case receiver:
		c.dev = e.like(s.ends[0], batch[at].To.Device)
		if err = c.alloc(); err == nil {
			text, err = c.listen()
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := s.g.Gather("handles", text)
	if err != nil {
		return nil, err
	}
	if c.side == sender {
		if err := c.h.Write(c.handles, all[peer]); err != nil {
			return nil, err
		}
	}
	mine, err := s.meetAll(c)
	if err != nil {
		return nil, err
	}
	samples, err := gather(s.g, "sample", mine)
	if err != nil {
		return nil, err
	}
	return samples, c.close()
}

// meetAll connects or accepts all, and moves 64 checked bytes on each.
func (s *site) meetAll(c *crowd) (m sample, err error) {
	var r *host.Reply
	role := "send"
	switch c.side {
	case idle:
		return m, nil
	case sender:
		r, err = s.loop(&link{end: c.end}, c.n.Setup, "conn.connect", host.Args{"ctx", c.n.Ctx, "dev", c.dev, "n", c.count, "handles", c.handles, "comms", c.comm, "inflight", c.count}).Wait()
	case receiver:
		role = "recv"
		r, err = s.loop(&link{end: c.end}, c.n.Setup, "conn.accept", host.Args{"n", c.count, "listens", c.listens, "comms", c.comm, "inflight", c.count}).Wait()
	}
	if err != nil {
		return m, err
	}
	us := func(key string) float64 { return r.Float(key) / 1e3 }
	m = sample{Us: r.Float("us"), CPU: us("utime") + us("stime"), Count: c.count, Times: Times{P50: us("p50"), P99: us("p99"), Max: us("max")}}
	moved, err := s.loop(&link{end: c.end}, c.n.Data, "conn.move", host.Args{"role", role, "n", c.count, "comms", c.comm, "size", 64}).Wait()
	m.Bad = moved.Int("bad")
	return m, err
}

func (c *crowd) alloc() error {
	for _, m := range []struct {
		p    *host.Ptr
		size int64
	}{{&c.handles, handleRoom * c.count}, {&c.listens, 8 * c.count}, {&c.comm, 8 * c.count}} {
		var err error
		if *m.p, err = c.h.Alloc(m.size); err != nil {
			return err
		}
		if err := c.h.FillByte(*m.p, m.size, 0); err != nil {
			return err
		}
	}
	return nil
}

// listen opens a rendezvous for every connection, as NCCL does.
func (c *crowd) listen() ([]byte, error) {
	var pending []*host.Pending
	for i := range c.count {
		pending = append(pending, c.h.Go(c.n.Setup, "net.listen", host.Args{"ctx", c.n.Ctx, "dev", c.dev, "handle", c.handles + host.Ptr(handleRoom*i)}))
	}
	var comms []byte
	for _, p := range pending {
		r, err := p.Wait()
		if err != nil {
			return nil, err
		}
		comms = binary.LittleEndian.AppendUint64(comms, uint64(r.Ptr("comm")))
	}
	if err := c.h.Write(c.listens, comms); err != nil {
		return nil, err
	}
	return c.h.Read(c.handles, handleRoom*c.count)
}

func (c *crowd) close() error {
	switch c.side {
	case sender:
		return errors.Join(c.closeAll("net.closeSend", c.comm), c.free())
	case receiver:
		return errors.Join(c.closeAll("net.closeRecv", c.comm), c.closeAll("net.closeListen", c.listens), c.free())
	}
	return nil
}

func (c *crowd) free() error {
	return errors.Join(c.h.Free(c.handles), c.h.Free(c.listens), c.h.Free(c.comm))
}

// closeAll closes every comm of an array.
func (c *crowd) closeAll(cmd string, array host.Ptr) error {
	comms, err := c.h.Read(array, 8*c.count)
	if err != nil {
		return err
	}
	var pending []*host.Pending
	for i := range c.count {
		pending = append(pending, c.h.Go(c.n.Setup, cmd, host.Args{"comm", host.Ptr(binary.LittleEndian.Uint64(comms[8*i:]))}))
	}
	for _, p := range pending {
		_, e := p.Wait()
		err = errors.Join(err, e)
	}
	return err
}
