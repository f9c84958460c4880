package collnet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/abi"
	"weft/internal/report"
	"weft/transport/rdma"
)

// A rank's path breaks at any moment: all ranks fail, and name it.
func TestLostRank(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(n, "/", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				w, all := inMemory(t, n, 4<<10)
				dead, after := r.IntN(n), int64(r.IntN(400))
				var messages atomic.Int64
				w.mu.Lock()
				w.fault = func(from, to int) error {
					if (from == dead || to == dead) && messages.Add(1) > after {
						return report.Errorf(report.Peer, "link", "the peer was killed")
					}
					return nil
				}
				w.mu.Unlock()
				each(all, func(m *member) {
					send, recv := m.memory(1<<20), m.memory(1<<20)
					defer send.end()
					defer recv.end()
					for range 100 {
						request, err := m.AllReduce(send.Buf, recv.Buf, 1<<18, abi.Float32, abi.Sum)
						if err != nil {
							return
						}
						if request == 0 {
							continue
						}
						if _, code := m.wait(request); code == 0 {
							continue
						} else if code != 100+int32(report.Peer) {
							t.Errorf("rank %d: code %d", m.rank, code)
						}
						if _, code := m.wait(request); code == 0 {
							t.Errorf("rank %d: the request has not failed any more", m.rank)
						}
						if _, err := m.AllReduce(send.Buf, recv.Buf, 1, abi.Float32, abi.Sum); err == nil {
							t.Errorf("rank %d: a comm that has failed takes operations", m.rank)
						}
						return
					}
					t.Errorf("rank %d does not fail", m.rank)
				})
				for _, m := range all {
					named := fmt.Sprintf("%s%d of %d", lostMark, dead, n)
					if m.rank == dead {
						named = lostMark
					}
					if m.log.Count("WARN", named) != 1 || m.log.Count("WARN") != 1 || m.log.Count("WARN", "look at the peer's log") != 0 {
						t.Errorf("rank %d, while rank %d is dead: %v", m.rank, dead, m.log.Lines())
					}
				}
				w.end(t, all)
			})
		}
	}
}

// An abort: the host closes, or deregisters, with operations under way.
func TestAbort(t *testing.T) {
	for _, how := range []string{"close", "deregister"} {
		t.Run(how, func(t *testing.T) {
			w, all := inMemory(t, 3, 4<<10)
			each(all, func(m *member) {
				send, recv := m.memory(1<<20), m.memory(1<<20)
				if m.rank == 2 { // which the others wait for
					return
				}
				request := m.began(func() (uintptr, error) { return m.AllReduce(send.Buf, recv.Buf, 1<<18, abi.Float32, abi.Sum) })
				if m.rank == 1 {
					if how == "deregister" {
						send.end()
						if _, code := m.wait(request); code != 100+int32(report.Misuse) {
							t.Errorf("code %d", code)
						}
						return
					}
					if err := m.Close(); err != nil {
						t.Error(err)
					}
					if _, _, code := m.words.test(request); code != -1 {
						t.Errorf("a request outlives its comm: %d", code)
					}
					return
				}
				if _, code := m.wait(request); code != 100+int32(report.Peer) {
					t.Errorf("code %d", code)
				}
				if m.log.Count("WARN", lostMark+"1 of 3") != 1 || how == "deregister" && m.log.Count("WARN", "an abort") != 1 {
					t.Errorf("%v", m.log.Lines())
				}
			})
			if n := all[1].log.Count("WARN"); n != 0 {
				t.Errorf("the host's own abort is a warning: %v", all[1].log.Lines())
			}
			if how == "close" {
				if err := all[1].Close(); report.CauseOf(err) != report.Misuse {
					t.Errorf("closed twice: %v", err)
				}
				all = []*member{all[0], all[2]}
			}
			w.end(t, all)
		})
	}
}

// What a host must not pass.
func TestMisuse(t *testing.T) {
	w, all := inMemory(t, 2, 64<<10)
	m := all[0]
	b := m.memory(4096)
	inside := Part{b.Buf, 4096}
	for name, call := range map[string]func() (uintptr, error){
		"a stale registration": func() (uintptr, error) { return m.AllReduce(Buf{b.Address, 99}, b.Buf, 1, abi.Int8, abi.Sum) },
		"beyond it":            func() (uintptr, error) { return m.AllReduce(b.Buf, b.at(1), 4096, abi.Int8, abi.Sum) },
		"before it": func() (uintptr, error) {
			return m.AllReduce(Buf{b.Address - 1, b.Handle}, b.Buf, 1, abi.Int8, abi.Sum)
		},
		"an average":            func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, 1, abi.Int8, abi.Avg) },
		"no type":               func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, 1, abi.NumTypes, abi.Sum) },
		"too many":              func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, 1<<62, abi.Int64, abi.Sum) },
		"buffers that overlap":  func() (uintptr, error) { return m.AllReduce(b.Buf, b.at(8), 100, abi.Int8, abi.Sum) },
		"a window beyond":       func() (uintptr, error) { return m.AllGather(b.Buf, []Part{inside}, Window{1024, 1, 2048}) },
		"a window that is huge": func() (uintptr, error) { return m.AllGather(b.Buf, []Part{inside}, Window{1 << 61, 0, 1 << 62}) },
		"parts too small":       func() (uintptr, error) { return m.AllGather(b.Buf, []Part{inside}, Window{4096, 0, 8192}) },
		"half an element": func() (uintptr, error) {
			return m.ReduceScatter([]Part{{b.Buf, 8}}, b.at(8), Window{6, 0, 8}, abi.Float32, abi.Sum)
		},
	} {
		if request, err := call(); request != 0 || report.CauseOf(err) != report.Misuse {
			t.Errorf("%s: request %d, %v", name, request, err)
		}
	}
	if _, err := m.RegMr(b.Address, 1, rdma.MemCUDA); report.CauseOf(err) != report.Usage {
		t.Errorf("GPU memory: %v", err)
	}
	if err := m.DeregMr(12345); report.CauseOf(err) != report.Misuse {
		t.Errorf("a registration that is none: %v", err)
	}
	if _, err := CommOf(uintptr(m.id) + 1000); err == nil {
		t.Error("a comm that is none")
	}
	w.end(t, all)
	if _, err := CommOf(m.Handle()); err == nil {
		t.Error("a comm that was closed")
	}
	if _, err := m.AllReduce(b.Buf, b.Buf, 1, abi.Int8, abi.Sum); err == nil {
		t.Error("a closed comm takes operations")
	}
}

// Counts differ between ranks.
func TestRanksDisagree(t *testing.T) {
	w, all := inMemory(t, 2, 64<<10)
	each(all, func(m *member) {
		b := m.memory(4096)
		defer b.end()
		request := m.began(func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, uint64(100+m.rank), abi.Int32, abi.Sum) })
		if _, code := m.wait(request); code == 0 {
			t.Errorf("rank %d does not fail", m.rank)
		}
	})
	w.end(t, all)
}

// What connect refuses, on all ranks, and leaves nothing of.
func TestConnectRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(rank int, o *Options, handles [][]byte, me *int) [][]byte
		want    string
		timeout time.Duration
	}{
		{"no ranks", func(_ int, _ *Options, h [][]byte, _ *int) [][]byte { return nil }, "0 ranks", 0},
		{"out of range", func(_ int, _ *Options, h [][]byte, me *int) [][]byte { *me = 3; return h }, "rank 3 of 3", 0},
		{"not ours", func(_ int, _ *Options, h [][]byte, me *int) [][]byte { *me = (*me + 1) % 3; return h }, "is not that of its listen", 0},
		{"twice", func(r int, _ *Options, h [][]byte, _ *int) [][]byte {
			return [][]byte{h[r], h[r], h[r]}
		}, "have the same handle", 0},
		{"chunks", func(r int, o *Options, h [][]byte, _ *int) [][]byte {
			if r == 1 {
				o.Chunk = 1 << 20
			}
			return h
		}, "WEFT_COLLNET_CHUNK", time.Second},
		{"a rank is missing", func(r int, _ *Options, h [][]byte, me *int) [][]byte {
			if r == 2 {
				*me = -1
			}
			return h
		}, "rank", time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			handles := make([][]byte, 3)
			var doors []*Listener
			for r := range handles {
				x := NewContext(Options{Net: &node{w, r}, Requests: newWords(), Log: &report.Recorder{}, Code: testCode, Timeout: max(c.timeout, 100*time.Millisecond), Chunk: 64 << 10,
					Name: func(int) string { return "mem0" }})
				handles[r] = make([]byte, 128)
				l, err := x.Listen(0, handles[r])
				if err != nil {
					t.Fatal(err)
				}
				doors = append(doors, l)
			}
			done := make(chan error, len(doors))
			for r, l := range doors {
				me := r
				mine := c.change(r, &l.ctx.Options, handles, &me)
				go func() {
					m, err := l.Connect(mine, me)
					if err == nil {
						m.Close()
						err = fmt.Errorf("rank %d is connected", r)
					} else if r != 2 && !strings.Contains(err.Error(), c.want) {
						err = fmt.Errorf("rank %d: %w", r, err)
					} else {
						err = nil
					}
					done <- err
				}()
			}
			for range doors {
				if err := <-done; err != nil && !strings.Contains(err.Error(), "gave the connection up") && !strings.Contains(err.Error(), "closed the connection") {
					t.Error(err)
				}
			}
			for _, l := range doors {
				if err := l.ctx.Close(); err != nil {
					t.Error(err)
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.links != 0 || w.regions != 0 {
				t.Errorf("%d links and %d registrations are left", w.links, w.regions)
			}
		})
	}
}

// A registration that comes after the close, or beside it, is refused, and leaves nothing.
func TestRegisterAfterClose(t *testing.T) {
	for _, n := range []int{1, 2} {
		w, all := inMemory(t, n, 64<<10)
		w.end(t, all)
		for _, m := range all {
			if h, err := m.RegMr(4096, 64, rdma.MemHost); err == nil || h != 0 {
				t.Errorf("rank %d of %d: handle %#x, error %v", m.rank, n, h, err)
			}
		}
		w.mu.Lock()
		if w.regions != 0 {
			t.Errorf("%d ranks: %d registrations are left", n, w.regions)
		}
		w.mu.Unlock()
	}
}
