package transport

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"weft/internal/report"
	"weft/transport/comms"
	"weft/transport/fastpath"
	"weft/transport/session"
	"weft/transport/wire"
)

func openFDs(t testing.TB) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// nothingLeft requires that descriptors and goroutines come back to what they were.
func nothingLeft(t *testing.T) func() {
	fds, routines := openFDs(t), runtime.NumGoroutine()
	return func() {
		t.Helper()
		eventually(t, fmt.Sprintf("%d descriptors and %d goroutines at most", fds+1, routines), func() bool {
			return openFDs(t) <= fds+1 && runtime.NumGoroutine() <= routines // +1: the runtime's epoll
		})
	}
}

func TestEveryoneConnectsBeforeAnyoneAccepts(t *testing.T) {
	const ranks = 8
	var ps [ranks]*process
	var ls [ranks][ranks]*Listener
	var hs [ranks][ranks][]byte
	for i := range ps {
		ps[i] = start(t, nil)
	}
	for i := range ranks {
		for j := range ranks {
			ls[i][j], hs[i][j] = ps[i].listen(t, wire.HandleMin)
		}
	}
	var sends [ranks][ranks]*Comm
	// Control connections, and whose they are.
	in, out := map[*session.Session]int{}, map[*session.Session]int{}
	for i := range ranks { // one thread, one after the other, to itself too
		for j := range ranks {
			c, err := ps[i].connect(hs[j][i])
			if err != nil {
				t.Fatal(i, j, err)
			}
			sends[i][j] = c
		}
	}
	for i := range ranks {
		for j := range ranks {
			c, err := accept(ls[j][i])
			if err != nil {
				t.Fatal(i, j, err)
			}
			if rand.IntN(8) == 0 {
				move(t, sends[i][j], c, 1000)
			}
			out[sends[i][j].Member().Session], in[c.Member().Session] = i, j
		}
	}
	for i := range ranks {
		if in, out := countOf(in, i), countOf(out, i); in != ranks || out != ranks {
			t.Errorf("rank %d has %d control connections in and %d out, there are %d processes", i, in, out, ranks)
		}
		// Each comm has one stream here; what is more would be control connections that no comm uses.
		if n := accepted(t, hs[i][0]); n != 2*ranks {
			t.Errorf("rank %d has %d connections to it open, of %d comms and as many control connections", i, n, ranks)
		}
	}
}

// countOf is how many keys have a value.
func countOf[K comparable](all map[K]int, value int) (n int) {
	for _, v := range all {
		if v == value {
			n++
		}
	}
	return n
}

func TestManyAtOnce(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	l, h := b.listen(t, wire.HandleMin) // while it stands, the sockets stay
	defer l.Close()
	const n = 200
	var wg sync.WaitGroup
	var on sync.Map // control connections
	for range 4 {
		wg.Go(func() {
			var ls [n / 4]*Listener
			var hs [n / 4][]byte
			for i := range ls {
				ls[i], hs[i] = b.listen(t, wire.HandleMax)
			}
			left := map[int]bool{}
			for i := range ls {
				left[i] = true
			}
			eventually(t, "connects in any order", func() bool {
				for i := range left {
					c, err := a.ctx.Connect(0, -1, hs[i])
					if err != nil {
						t.Error(err)
					}
					if c != nil {
						on.Store(c.Member().Session, nil)
					}
					if c != nil || err != nil {
						delete(left, i)
					}
				}
				return len(left) == 0
			})
			for _, i := range rand.Perm(len(ls)) {
				if _, err := accept(ls[i]); err != nil {
					t.Error(err)
				}
				ls[i].Close()
			}
		})
	}
	wg.Wait()
	sessions := 0
	on.Range(func(any, any) bool { sessions++; return true })
	if open := accepted(t, h) - n; sessions != 1 || open != 1 { // a comm has one stream
		t.Errorf("%d control connections carry comms, %d are open", sessions, open)
	}
}

func TestCloseInAnyOrder(t *testing.T) {
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	check := nothingLeft(t)
	for _, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			a, b := start(t, nil), start(t, nil)
			l, h := b.listen(t, wire.HandleMax)
			s, r := meet(t, a, l, h)
			closers := []func() error{s.Close, r.Close, l.Close}
			for _, i := range order {
				if err := closers[i](); err != nil {
					t.Error(err)
				}
			}
			for i, again := range closers {
				if report.CauseOf(again()) != report.Misuse {
					t.Errorf("closing %d twice is no misuse", i)
				}
			}
			if _, err := ListenerOf(l.Handle()); report.CauseOf(err) != report.Misuse {
				t.Error("a closed listen is found")
			}
		})
	}
	check()
}

func TestNeverAccepted(t *testing.T) {
	check := nothingLeft(t)
	t.Run("", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		l, h := b.listen(t, wire.HandleMax)
		s, err := a.connect(h)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a comm in the queue", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.ready) == 1 })
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		in := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS))
		drive(t, "a send to a comm that was reaped", in)
		if in.code != 100+int32(report.Peer) {
			t.Errorf("code %d", in.code)
		}
	})
	check()
}

func TestAbandoned(t *testing.T) {
	check := nothingLeft(t)
	t.Run("swept at finalize", func(t *testing.T) {
		others := listening(t)
		a, b := start(t, nil), start(t, nil)
		for range 5 {
			_, h := b.listen(t, wire.HandleMax)
			if _, err := a.ctx.Connect(0, -1, h); err != nil {
				t.Fatal(err)
			}
		}
		a.ctx.Close()
		b.ctx.Close()
		if _, err := a.ctx.Connect(0, -1, make([]byte, 128)); err == nil {
			t.Error("connect after finalize")
		}
		if _, err := b.ctx.Listen(0, make([]byte, 128)); report.CauseOf(err) != report.Misuse {
			t.Errorf("listen after finalize: %v", err)
		}
		if n := listening(t) - others; n != 0 {
			t.Errorf("%d sockets without a listen", n)
		}
	})
	t.Run("swept at the deadline", func(t *testing.T) {
		a, b := start(t, map[string]string{"WEFT_CONNECT_TIMEOUT": "1"}), start(t, nil)
		l, h := b.listen(t, wire.HandleMax)
		a.connecting(t, h)
		eventually(t, "the connect is forgotten", func() bool {
			a.ctx.owned.Lock()
			defer a.ctx.owned.Unlock()
			return len(a.ctx.owned.connectors) == 0 && len(a.ctx.owned.comms) == 0
		})
		eventually(t, "the listen keeps nothing of it", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.setup) == 0
		})
		if c, err := l.Accept(); c != nil || err != nil {
			t.Errorf("accepted what nobody has taken: %v %v", c, err)
		}
	})
	check()
}

func TestHandleStateOfOthersIsIgnored(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	l, h := b.listen(t, wire.HandleMax)
	wire.PutState(h, 0xdeadbeef)
	if c, err := a.ctx.Connect(0, -1, h); c != nil || err != nil {
		t.Fatal(c, err)
	}
	other, _ := wire.State(h)
	l2, h2 := b.listen(t, wire.HandleMax)
	wire.PutState(h2, other) // another listen's state
	if _, err := a.connect(h2); err != nil {
		t.Fatal(err)
	}
	if _, err := a.connect(h); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Listener{l, l2} {
		if _, err := accept(x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := comms.Of(uintptr(l.handle), fastpath.Send); report.CauseOf(err) != report.Misuse {
		t.Error("a listen passed for a comm")
	}
	if _, err := a.ctx.Connect(0, -1, make([]byte, 128)); report.CauseOf(err) != report.Usage {
		t.Errorf("empty handle: %v", err)
	}
	if _, err := a.ctx.Connect(7, -1, h); report.CauseOf(err) != report.Misuse {
		t.Errorf("device 7: %v", err)
	}
}
