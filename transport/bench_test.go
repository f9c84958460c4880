package transport

import (
	"net"
	"sort"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/transport/wire"
)

// BenchmarkConnect times connects of a pair that has its control connection,
// one at a time, and reports the p99.
func BenchmarkConnect(b *testing.B) {
	for _, streams := range []struct {
		name string
		n    int
	}{{"1 stream", 1}, {"8 streams", 8}} {
		b.Run(streams.name, func(b *testing.B) {
			x, y := start(b, nil), start(b, nil, lo(streams.n))
			keep, _ := y.listen(b, wire.HandleMax)
			defer keep.Close()
			pair(b, x, y)
			var all []time.Duration
			for b.Loop() {
				l, h := y.listen(b, wire.HandleMax)
				begin := time.Now()
				s, err := poll(func() (*Comm, error) { return x.ctx.Connect(0, -1, h) })
				if err != nil {
					b.Fatal(err)
				}
				r, err := poll(l.Accept)
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(begin))
				l.Close()
				s.Close()
				r.Close()
			}
			percentiles(b, all)
		})
	}
	b.Run("first of a pair", func(b *testing.B) {
		var all []time.Duration
		for b.Loop() {
			x, y := start(b, nil), start(b, nil)
			l, h := y.listen(b, wire.HandleMax)
			begin := time.Now()
			if _, err := poll(func() (*Comm, error) { return x.ctx.Connect(0, -1, h) }); err != nil {
				b.Fatal(err)
			}
			if _, err := poll(l.Accept); err != nil {
				b.Fatal(err)
			}
			all = append(all, time.Since(begin))
			x.Close()
			y.Close()
		}
		percentiles(b, all)
	})
	b.Run("bare TCP", func(b *testing.B) {
		var all []time.Duration
		l := bareListen(b)
		for b.Loop() {
			begin := time.Now()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			d, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, time.Since(begin))
			c.Close()
			d.Close()
		}
		percentiles(b, all)
	})
}

// BenchmarkStorm begins 1,000 connects at once and reports how long the slowest
// of 99 % took, beside the same number of bare connects in the same run.
func BenchmarkStorm(b *testing.B) {
	const n = 1000
	b.Run("weft", func(b *testing.B) {
		var all []time.Duration
		var used time.Duration
		for b.Loop() {
			x, y := start(b, nil), start(b, nil)
			var hs [n][]byte
			var ls [n]*Listener
			for i := range hs {
				ls[i], hs[i] = y.listen(b, wire.HandleMax)
			}
			begin, before := time.Now(), cpu()
			for i := range hs {
				if _, err := x.ctx.Connect(0, -1, hs[i]); err != nil {
					b.Fatal(err)
				}
			}
			leftC, leftA := indices(n), indices(n)
			for end := begin.Add(testLimit); len(leftC)+len(leftA) > 0 && time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
				leftC = keepIf(leftC, func(i int) bool {
					c, err := x.ctx.Connect(0, -1, hs[i])
					if err != nil {
						b.Fatal(err)
					}
					return c == nil
				})
				leftA = keepIf(leftA, func(i int) bool {
					c, err := ls[i].Accept()
					if err != nil {
						b.Fatal(err)
					}
					if c != nil {
						all = append(all, time.Since(begin))
					}
					return c == nil
				})
			}
			if len(leftC)+len(leftA) > 0 {
				b.Fatal("connects left over")
			}
			used += cpu() - before
			x.Close()
			y.Close()
		}
		percentiles(b, all)
		b.ReportMetric(float64(used.Microseconds())/float64(b.N*n), "cpu-us/connect")
		b.ReportMetric(float64(status(b)["Threads:"]), "threads")
	})
	b.Run("bare TCP", func(b *testing.B) {
		var all []time.Duration
		var used time.Duration
		for b.Loop() {
			l := bareListen(b)
			var wg sync.WaitGroup
			conns := make(chan net.Conn, 2*n)
			begin, before := time.Now(), cpu()
			for range n {
				wg.Go(func() {
					c, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						b.Error(err)
						return
					}
					conns <- c
				})
			}
			for range n {
				c, err := l.Accept()
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(begin))
				conns <- c
			}
			wg.Wait()
			used += cpu() - before
			close(conns)
			for c := range conns {
				c.Close()
			}
			l.Close()
		}
		percentiles(b, all)
		b.ReportMetric(float64(used.Microseconds())/float64(b.N*n), "cpu-us/connect")
	})
}

func bareListen(b *testing.B) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

// poll asks as a host's service thread does, without sleeping for long.
func poll(ask func() (*Comm, error)) (*Comm, error) {
	for end := time.Now().Add(testLimit); time.Now().Before(end); time.Sleep(5 * time.Microsecond) {
		if c, err := ask(); c != nil || err != nil {
			return c, err
		}
	}
	return nil, errStill
}

func indices(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func keepIf(in []int, keep func(int) bool) []int {
	out := in[:0]
	for _, i := range in {
		if keep(i) {
			out = append(out, i)
		}
	}
	return out
}

// cpu is what this process has used of both cores.
func cpu() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func percentiles(b *testing.B, all []time.Duration) {
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(p float64) float64 { return float64(all[int(p*float64(len(all)-1))].Microseconds()) }
	b.ReportMetric(at(0.5), "p50-us")
	b.ReportMetric(at(0.99), "p99-us")
}
