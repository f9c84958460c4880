package transport

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/transport/wire"
)

// BenchmarkHeld reports what connections cost that one process holds, both ends
// of each: memory and threads. 9,900 fit below a hard limit of 20,000 files.
func BenchmarkHeld(b *testing.B) {
	for _, n := range []struct {
		name string
		n    int
	}{{"1000", 1000}, {"9900", 9900}} {
		b.Run(n.name, func(b *testing.B) {
			var lim unix.Rlimit
			if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Max < uint64(2*n.n+100) {
				b.Skipf("the hard limit of open files is %d", lim.Max)
			}
			for b.Loop() {
				x, y := start(b, nil), start(b, nil)
				before := status(b)
				heap := heapNow()
				begin := time.Now()
				for range n.n {
					l, h := y.listen(b, wire.HandleMax)
					if _, err := poll(func() (*Comm, error) { return x.ctx.Connect(0, -1, h) }); err != nil {
						b.Fatal(err)
					}
					if _, err := poll(l.Accept); err != nil {
						b.Fatal(err)
					}
					l.Close()
				}
				b.ReportMetric(float64(n.n)/time.Since(begin).Seconds(), "connects/s")
				after := status(b)
				ends := float64(2 * n.n)
				b.ReportMetric(float64(heapNow()-heap)/ends, "heap-B/end")
				b.ReportMetric(float64(after["VmRSS:"]-before["VmRSS:"])*1024/ends, "rss-B/end")
				b.ReportMetric(float64(after["Threads:"]), "threads")
				b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
				x.Close()
				y.Close()
			}
		})
	}
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// status reads the numbers of /proc/self/status.
func status(b *testing.B) map[string]int {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	out := map[string]int{}
	for _, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) > 1 {
			n := 0
			for _, c := range f[1] {
				if c < '0' || c > '9' {
					break
				}
				n = n*10 + int(c-'0')
			}
			out[f[0]] = n
		}
	}
	return out
}
