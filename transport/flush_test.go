package transport

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weft/internal/hostcalls"
	"weft/internal/report"
)

// slowFlush has a queue pair that cannot be connected at first tried again, 5 s later.
func slowFlush(env map[string]string) map[string]string {
	return with(with(with(env, "NCCL_IB_MQP_RETRY_CNT", "1"), "NCCL_IB_MQP_RETRY_SLEEP_MSEC", "5000"), "WEFT_TIMEOUT", "40")
}

// begunSlowly begins the first flush of r, whose queue pair is not there for a while.
func begunSlowly(t *testing.T, b *process, r *Comm, buf hostcalls.Buf) *transfer {
	t.Helper()
	command(t, "fail modify_qp 2 ETIMEDOUT") // the first brings it to INIT
	x := begun(t, r, buf)
	eventually(t, "its queue pair is not there", func() bool { return b.log.Count("INFO", "try 2 of 2 follows in 5s") == 1 })
	return x
}

// lookEvery paces what follows a comm that its peer has closed.
const lookEvery = time.Second

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
			if n := len(loopsOf(t, r)); n != first {
				t.Errorf("%d at first", n)
			}
			if mode == "background" {
				eventually(t, "it comes", func() bool { return len(loopsOf(t, r)) == 1 })
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
			if len(loopsOf(t, r)) != 1 || len(loopsOf(t, s)) != 0 {
				t.Errorf("%v and %v", loopsOf(t, r), loopsOf(t, s))
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
	if err := fast(r).Hold(); err != nil {
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
	fast(r).Release()
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
			env := map[string]string{"WEFT_FLUSH": "always"}
			a, b := startSim(t, "=simA", env), startSim(t, "=simB", env)
			keeper, other := pair(t, a, b)
			complete(t, b, keeper, other)
			probed(t, a, b)
			fails := func(times int) (s, r *Comm, to hostcalls.Buf) { // in the background
				wait := make(chan struct{})
				other.Member().Session.Background.Loops.Add(report.Discard{}, func() { <-wait })
				s, r = pair(t, a, b)
				command(t, step)
				close(wait)
				eventually(t, "it cannot be made", func() bool { return b.log.Count("INFO", "no flush QP yet, the first flush tries again") == times })
				if len(loopsOf(t, r)) != 0 {
					t.Error("it is there")
				}
				to = register(t, r, buffer(t, 4096), 4096)
				drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
				return s, r, to
			}
			s, r, to := fails(1)
			command(t, step)
			if code := until(t, "the flush ends", begun(t, r, to)); code != codeHost {
				t.Errorf("code %d", code)
			}
			if b.log.Count("WARN", "ibv_", "EIO", "simB") != 1 {
				t.Errorf("%q", b.log.Lines())
			}
			eventually(t, "the peer hears of it", func() bool { return a.log.Count("WARN", "the peer gave the connection up") == 1 })
			s.Close()
			r.Close()
			over(t, s, r)

			s, r, to = fails(2)
			if code := until(t, "the flush ends", begun(t, r, to)); code != 0 {
				t.Errorf("code %d at the second attempt", code)
			}
			noneLeft(t, s, r, keeper, other)
		})
	}
}

// A flush that waits for its queue pair is no sign of a peer that has left something undone.
func TestSimFlushAfterThePeerClosed(t *testing.T) {
	a, b, s, r := simPair(t, slowFlush(lazyFlush))
	probed(t, a, b)
	to := register(t, r, buffer(t, 4096), 4096)
	drive(t, "data", recv(r, to), send(s, register(t, s, buffer(t, 4096), 4096)))
	x := begunSlowly(t, b, r, to)
	s.Close()
	time.Sleep(2 * lookEvery)
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
	eventually(t, "a queue pair for flushes", func() bool { return len(loopsOf(t, r)) == 1 })
	command(t, fmt.Sprintf("error simB 1 LOC_PROT_ERR lost %d", loopsOf(t, r)[0]))
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
		func(s, r *Comm) { s.Member().Session.Conn.Close(); s.Close(); r.Close() },
	}
	for i := range 40 {
		s, r := pair(t, a, b)
		begun(t, r, register(t, r, buffer(t, 4096), 4096))
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		ends[i%len(ends)](s, r)
	}
	noQPLeft(t, a, b)
}
