package transport

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/transport/lanes"
)

// loopsOf counts the queue pairs for flushes that the executor has.
func loopsOf(c *Comm) int {
	ready, _ := c.carrier.(*lanes.Carrier).Flushing()
	return ready
}

// lazyFlush has the watch look so seldom that nothing but what a call asks for is made.
var lazyFlush = map[string]string{"WEFT_FLUSH": "always", "WEFT_LAZY": "demand", "WEFT_TIMEOUT": "3600"}

// begun is a flush of what has been received into buf.
func begun(t *testing.T, r *Comm, buf hostcalls.Buf) *transfer {
	t.Helper()
	req, code := hostcalls.Iflush(r.Handle(), buf)
	if req == 0 || code != 0 {
		t.Fatalf("flush: request %#x, code %d", req, code)
	}
	return &transfer{req: req}
}

// The queue pair for flushes is there at connect, soon after, or when the first
// flush waits for it; none is left out, and they end in whatever order they are tested.
func TestSimFlushQueuePairComes(t *testing.T) {
	for mode, first := range map[string]int{"off": 1, "background": 0, "demand": 0} {
		t.Run(mode, func(t *testing.T) {
			env := with(lazyFlush, "WEFT_LAZY", mode)
			if mode == "background" {
				env["WEFT_TIMEOUT"] = "4"
			}
			_, _, s, r := simPair(t, env)
			if n := loopsOf(r); n != first {
				t.Errorf("%d at first", n)
			}
			if mode == "background" {
				eventually(t, "it comes", func() bool { return loopsOf(r) == 1 })
			}
			to := register(t, r, buffer(t, 4096), 4096)
			drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
			var all []*transfer
			for range 40 { // more than the queue pair takes at once
				all = append(all, begun(t, r, to))
			}
			drive(t, "flushes", all...)
			for _, x := range all {
				if x.code != 0 {
					t.Errorf("code %d", x.code)
				}
			}
			if loopsOf(r) != 1 || loopsOf(s) != 0 {
				t.Errorf("%d and %d", loopsOf(r), loopsOf(s))
			}
			noneLeft(t, s, r)
		})
	}
}

// A flush that meets the gate while the core holds it begins when the core lets go.
func TestSimFlushMeetsAHeldGate(t *testing.T) {
	_, _, s, r := simPair(t, with(lazyFlush, "WEFT_LAZY", "off"))
	to := register(t, r, buffer(t, 4096), 4096)
	drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
	if err := r.fp.Hold(); err != nil {
		t.Fatal(err)
	}
	var all []*transfer
	for range 3 {
		all = append(all, begun(t, r, to))
	}
	for _, x := range all {
		if done, _, code := hostcalls.Test(x.req); done || code != 0 {
			t.Errorf("done %v, code %d, while the gate is held", done, code)
		}
	}
	r.fp.Release()
	drive(t, "flushes", all...)
	for _, x := range all {
		if x.code != 0 {
			t.Errorf("code %d", x.code)
		}
	}
	noneLeft(t, s, r)
}

// One that cannot be made in the background is made for the flush that needs it; if
// it cannot be then, the comm ends on both sides with the cause.
func TestSimFlushQueuePairThatCannotBe(t *testing.T) {
	for _, step := range []string{"fail create_qp 1 EIO", "fail modify_qp 1 EIO", "fail modify_qp 2 EIO", "fail modify_qp 3 EIO"} {
		t.Run(step, func(t *testing.T) {
			a, b, s, r := probedPair(t, lazyFlush)
			v := r.carrier.(*lanes.Carrier)
			command(t, step)
			if err := v.MakeLoops(); err == nil || loopsOf(r) != 0 {
				t.Errorf("%v", err)
			}
			to := register(t, r, buffer(t, 4096), 4096)
			drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
			command(t, step)
			if code := until(t, "the flush ends", begun(t, r, to)); code != codeHost {
				t.Errorf("code %d", code)
			}
			if b.log.Count("WARN", "ibv_", "EIO", "simB") != 1 {
				t.Errorf("%q", b.log.Lines())
			}
			eventually(t, "the peer hears of it", func() bool { return a.log.Count("WARN", "the peer gave the connection up") == 1 })
			noneLeft(t, s, r)

			s, r = pair(t, a, b)
			probed(t, a, b)
			command(t, step)
			r.carrier.(*lanes.Carrier).MakeLoops()
			to = register(t, r, buffer(t, 4096), 4096)
			drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
			if code := until(t, "the flush ends", begun(t, r, to)); code != 0 {
				t.Errorf("code %d at the second attempt", code)
			}
			noneLeft(t, s, r)
		})
	}
}

// A flush that waits for its queue pair is no sign of a peer that has left something undone.
func TestSimFlushAfterThePeerClosed(t *testing.T) {
	_, b, s, r := simPair(t, lazyFlush)
	to := register(t, r, buffer(t, 4096), 4096)
	drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
	v := r.carrier.(*lanes.Carrier)
	v.Loops.Lock() // the making of it takes long
	x := begun(t, r, to)
	s.Close()
	time.Sleep(2 * followEvery)
	v.Loops.Unlock()
	if code := until(t, "the flush ends", x); code != 0 {
		t.Errorf("code %d: %q", code, b.log.Lines())
	}
	noneLeft(t, r)
}

// A flush that fails once the peer has closed ends the comm, also where the host does not look.
func TestSimFlushFailsAfterThePeerClosed(t *testing.T) {
	_, b, s, r := simPair(t, map[string]string{"WEFT_FLUSH": "always"})
	to := register(t, r, buffer(t, 4096), 4096)
	drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
	eventually(t, "a queue pair for flushes", func() bool { return loopsOf(r) == 1 })
	command(t, fmt.Sprintf("error simB 1 LOC_PROT_ERR lost %d", r.carrier.(*lanes.Carrier).Ports()[0].Flush.Number))
	x := begun(t, r, to)
	s.Close()
	eventually(t, "the flush's end", func() bool { return b.log.Count("WARN", "a flush read ended LOC_PROT_ERR") == 1 })
	if code := until(t, "the flush ends", x); code != codeHost {
		t.Errorf("code %d: %q", code, b.log.Lines())
	}
	noneLeft(t, r)
}

// A comm that ends while its first flush waits leaves nothing.
func TestSimFlushOfAnEnd(t *testing.T) {
	a, b := startSim(t, "=simA", lazyFlush), startSim(t, "=simB", lazyFlush)
	ends := []func(s, r *Comm){
		func(s, r *Comm) { s.Close(); r.Close() },
		func(s, r *Comm) { r.Close(); s.Close() },
		func(s, r *Comm) { r.Fail(errAbandoned); s.Close(); r.Close() },
		func(s, r *Comm) { s.member.Session.Conn.Close(); s.Close(); r.Close() },
	}
	for i := range 40 {
		s, r := pair(t, a, b)
		begun(t, r, register(t, r, buffer(t, 4096), 4096))
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		ends[i%len(ends)](s, r)
	}
	noQPLeft(t, a, b)
}
