package transport

import (
	"testing"
	"time"
)

// stallsSoon is short, and long enough that a busy machine makes no stall and a line is seen before it comes again.
var stallsSoon = map[string]string{"WEFT_STALL_SECONDS": "2"}

// watching has every process say what stands still.
func watching(all ...*process) {
	for _, p := range all {
		p.stall.Start()
	}
}

// overBoth runs a test over TCP and over RDMA; hosts are n processes that reach one another.
func overBoth(t *testing.T, n int, test func(t *testing.T, hosts []*process)) {
	t.Helper()
	t.Run("TCP", func(t *testing.T) {
		var all []*process
		for range n {
			all = append(all, start(t, stallsSoon))
		}
		test(t, all)
	})
	t.Run("RDMA", func(t *testing.T) {
		var all []*process
		for i := range n {
			all = append(all, startSim(t, []string{"=simA", "=simB"}[i%2], stallsSoon))
		}
		test(t, all)
	})
}

// seeStall has a receive wait beside one of a process that tells of waits of 2 s.
func seeStall(t *testing.T, env map[string]string) string {
	a, b, beside := start(t, nil), start(t, env), start(t, map[string]string{"WEFT_STALL_SECONDS": "2"})
	var in []*transfer
	for _, p := range []*process{b, beside} {
		s, r := pair(t, a, p)
		move(t, s, r, 8)
		in = append(in, recv(r, register(t, r, buffer(t, 100), 100)))
	}
	watching(b, beside)
	pumped(t, "a line", func() bool { return lines(beside) > 0 }, in...)
	if lines(b) > 0 {
		return "sooner than after 2 s"
	}
	return "later"
}

// lines counts those of the watcher that have all parts.
func lines(p *process, parts ...string) int { return p.log.Count("WARN stall: ", parts...) }

func none(t *testing.T, all ...*process) {
	t.Helper()
	for _, p := range all {
		if lines(p) != 0 {
			t.Errorf("%q", p.log.Lines())
		}
	}
}

func pumped(t *testing.T, what string, ok func() bool, all ...*transfer) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, x := range all {
			x.step()
		}
		return ok()
	})
}

// Whom a send or a receive waits for has not done its part, and waits for nobody.
func TestStallOfAPeerThatIsLate(t *testing.T) {
	for _, c := range []struct{ name, says string }{
		{"no receive", "send to"}, {"no send", "receive from"},
	} {
		t.Run(c.name, func(t *testing.T) {
			overBoth(t, 2, func(t *testing.T, p []*process) {
				s, r := pair(t, p[0], p[1])
				move(t, s, r, waitsForCTS)
				watching(p...)
				out, in := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS)), recv(r, register(t, r, buffer(t, waitsForCTS), waitsForCTS))
				first, second, who := out, in, p[0]
				if c.name == "no send" {
					first, second, who = in, out, p[1]
				}
				pumped(t, "a line", func() bool { return lines(who, c.says, "waits for nobody") == 1 }, first)
				drive(t, "the message", first, second)
				eventually(t, "the end", func() bool { return lines(who, c.says, "moves again, after") == 1 })
				if lines(p[0])+lines(p[1]) != 2 {
					t.Errorf("%q %q", p[0].log.Lines(), p[1].log.Lines())
				}
			})
		})
	}
}

// In a chain each process is told of, and the last one is the cause.
func TestStallOfAChain(t *testing.T) {
	overBoth(t, 3, func(t *testing.T, p []*process) {
		s1, r1 := pair(t, p[0], p[1])
		s2, r2 := pair(t, p[1], p[2])
		move(t, s1, r1, 8)
		move(t, s2, r2, 8)
		watching(p...)
		out := send(s1, register(t, s1, buffer(t, waitsForCTS), waitsForCTS))
		through := send(s2, register(t, s2, buffer(t, waitsForCTS), waitsForCTS))
		pumped(t, "the cause", func() bool {
			return lines(p[0], "its NCCL has posted no receive; that process runs and waits itself", "post a receive", "waits for nobody") >= 1 &&
				lines(p[1], "its NCCL has posted no receive; that process runs and waits for nobody") >= 1
		}, out, through)
		if lines(p[2]) != 0 {
			t.Errorf("%q", p[2].log.Lines())
		}
	})
}

// Comms that have done what was asked of them, and those whose host asks for nothing, are no stalls.
func TestNoStallOfIdleComms(t *testing.T) {
	overBoth(t, 2, func(t *testing.T, p []*process) {
		watching(p...)
		var pairs [3][2]*Comm
		for i := range pairs {
			s, r := pair(t, p[0], p[1])
			move(t, s, r, waitsForCTS)
			pairs[i] = [2]*Comm{s, r}
		}
		in := awaiting(t, pairs[0][1], 4096) // posted, and not asked for: a host that does something else
		time.Sleep(3 * time.Second)
		none(t, p...)
		out := send(pairs[0][0], register(t, pairs[0][0], buffer(t, 4096), 4096))
		drive(t, "the message", out, in)
		none(t, p...)
	})
}

// A message that takes several times as long as a wait that is told, and moves all the while, is none.
func TestNoStallOfASlowMessage(t *testing.T) {
	a, b := start(t, stallsSoon), start(t, stallsSoon)
	s, r := pair(t, a, b)
	const size = 96 << 20
	out, in := send(s, register(t, s, buffer(t, size), size)), recv(r, register(t, r, buffer(t, size), size))
	pumped(t, "a receive", func() bool { return in.req != 0 && out.req != 0 }, in, out)
	watching(a, b)
	for ; !in.done; in.step() { // a piece at a time
		time.Sleep(150 * time.Millisecond)
		out.step()
		out.step()
	}
	drive(t, "the message", out, in)
	none(t, a, b)
}
