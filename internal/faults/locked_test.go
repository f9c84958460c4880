package faults

import (
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestMemoryIsNeverEmptied opens connections one after another in processes whose
// kernel does not empty the memory that weft gives back: it is locked, or a sandbox
// lets madvise succeed and does nothing. Each sender asks before its receive is posted, so
// what it would find then is of a connection before.
func TestMemoryIsNeverEmptied(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		what   string
		before bool // dlopen
		do     string
		args   host.Args
	}{
		{"mlockall", false, "proc.lock", host.Args{"current", 1, "future", 1}},
		{"MCL_FUTURE before dlopen", true, "proc.lock", host.Args{"current", 0, "future", 1}},
		{"madvise does nothing", false, "proc.keep", nil},
	} {
		for _, over := range []string{"TCP", "RDMA"} {
			t.Run(how.what+", "+over, func(t *testing.T) {
				t.Parallel()
				var w *world
				if over == "RDMA" {
					w = newWorld(t, simverbs.Device{}, simverbs.Device{})
				}
				begin := func(name string) *peer {
					var env []string
					if w != nil {
						env = w.env(name)
					}
					p := bare(t, name, env...)
					change := func() {
						sparse := host.Args{"onfault", w != nil} // the simulation's arena is never filled
						if _, err := p.h.Call("main", how.do, append(sparse, how.args...)); err != nil {
							t.Skipf("%s: %v (RLIMIT_MEMLOCK, or seccomp is forbidden)", how.what, err)
						}
					}
					if how.before {
						change()
					}
					p.load(newest)
					must(t, p.n.Init(), "init")
					if !how.before {
						join(p, p, 4096) // slabs are there to be locked
						change()
					}
					return p
				}
				tx, rx := begin("simA"), begin("simB")
				stays := join(tx, rx, 1<<16) // memory stays registered while it is open
				var before []*conn
				for range 4 {
					c := join(tx, rx, 1<<16)
					for _, old := range before {
						must(t, rx.h.FillByte(old.b, old.size, 0), "fill")
					}
					for i, size := range []int64{4096, 64, 4096} { // one of them may go ahead of its receive
						c.early(i, size)
					}
					for _, old := range before {
						must(t, rx.h.CheckByte(old.b, old.size, 0), "the buffer of a closed connection")
					}
					c.move(traffic{size: 3000, count: 300, window: 8}) // more than a ring has lines
					must(t, tx.n.CloseSend(c.send), "closeSend")
					must(t, rx.n.CloseRecv(c.recv), "closeRecv")
					before = append(before, c)
				}
				stays.move(traffic{size: 3000, count: 10, window: 2})
			})
		}
	}
}

// early sends a message for which isend is asked before irecv.
func (c *conn) early(i int, size int64) {
	t := c.tx.t
	t.Helper()
	seed := uint64(1000*i) + uint64(c.recv)
	must(t, c.tx.h.Fill(c.a, size, seed), "fill")
	must(t, c.rx.h.FillByte(c.b, c.size, 0), "fill")
	var sent host.Ptr
	for range 3 { // a line that is there is taken at once
		if sent != 0 {
			break
		}
		var err error
		sent, err = c.tx.n.Isend(c.send, c.a, size, 1, c.amh)
		must(t, err, "isend before its receive")
	}
	q, err := c.rx.n.Irecv(c.recv, []host.Recv{{Data: c.b, Size: size, Tag: 1, MH: c.bmh}}, "poll", 1)
	must(t, err, "irecv")
	recv := c.rx.h.GoIn(2*patience, c.rx.n.Data, "net.test", host.Args{"on", c.rx.n.As, "req", q, "n", 1, "poll", 1, "limit", patience})
	if sent == 0 {
		sent, err = c.tx.n.Isend(c.send, c.a, size, 1, c.amh, "poll", 1, "limit", patience)
		must(t, err, "isend")
	}
	_, err = c.tx.n.Wait(sent, 1, patience)
	must(t, err, "the send")
	_, err = recv.Wait()
	must(t, err, "the receive")
	must(t, c.rx.h.Check(c.b, size, seed), "what arrived")
}
