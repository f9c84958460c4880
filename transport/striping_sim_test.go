package transport

import (
	"fmt"
	"testing"
	"time"
)

// striped is a comm over two pairs of ports, of 0.4 and 0.1 GB/s.
func striped(t testing.TB, env map[string]string) (s, r *Comm) {
	a, b := startSim(t, "=simA,simC", env), startSim(t, "=simB,simD", env)
	a.fusedWith(t, 0, 1)
	b.fusedWith(t, 0, 1)
	s, r = pair(t, a, b)
	grown(t, s, r, 2)
	command(t, "rate simA 0.4")
	command(t, "rate simC 0.1")
	t.Cleanup(func() {
		command(t, "rate simA 0")
		command(t, "rate simC 0")
		s.Close()
		r.Close()
	})
	return s, r
}

// share is the part that lane 0 has of what the comm has carried since before.
func share(s *Comm, before []uint64) (part float64, now []uint64) {
	for _, l := range fast(s).LaneRates(nil) {
		now = append(now, l.Bytes)
	}
	if before == nil {
		before = make([]uint64, len(now))
	}
	sum := uint64(0)
	for i := range now {
		sum += now[i] - before[i]
	}
	return float64(now[0]-before[0]) / float64(max(sum, 1)), now
}

// The shares of a comm's messages follow what its lanes really carry, and so
// does the number of those that are too small to be cut.
func TestSimStriping(t *testing.T) {
	for _, size := range []int{4 << 20, 32 << 10} {
		t.Run(fmt.Sprint(size, " bytes"), func(t *testing.T) {
			s, r := striped(t, map[string]string{"WEFT_TIMEOUT": "4"})
			until := func(what string, low, high float64) {
				t.Helper()
				deadline := time.Now().Add(time.Minute)
				for {
					before := fast(s).LaneStates(nil)
					_, bytes := share(s, nil)
					stream(t, s, r, size, 100*time.Millisecond)
					part, _ := share(s, bytes)
					if now := fast(s).LaneStates(nil); size < 64<<10 {
						a, b := now[0].Posted-before[0].Posted, now[1].Posted-before[1].Posted
						part = float64(a) / float64(a+b)
					}
					if part > low && part < high {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s: the faster lane has %.3f of the last messages", what, part)
					}
				}
			}
			until("0.4 and 0.1", 0.72, 0.88)
			command(t, "rate simA 0.05")
			until("0.05 and 0.1", 0.2, 0.45)
			command(t, "rate simA 0.4")
			until("0.4 again", 0.72, 0.88)
		})
	}
}

// seeStriping says who carries more, before long.
func seeStriping(t *testing.T, env map[string]string) string {
	s, r := striped(t, env)
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		_, before := share(s, nil)
		move(t, s, r, 4<<20)
		if part, _ := share(s, before); part > 0.7 {
			return "the faster"
		}
	}
	return "neither"
}

// BenchmarkSimStriping compares lanes of 0.4 and 0.1 GB/s, and of 0.2 and 0.1
// once the shares have followed, with their sum.
func BenchmarkSimStriping(b *testing.B) {
	for _, mode := range []string{"even", "speed", "measured"} {
		b.Run(mode, func(b *testing.B) {
			s, r := striped(b, map[string]string{"WEFT_STRIPING": mode})
			for _, rates := range [][2]float64{{0.4, 0.1}, {0.2, 0.1}} {
				command(b, fmt.Sprintf("rate simA %g", rates[0]))
				stream(b, s, r, 4<<20, 4*time.Second) // 16 turns of the watch
				got := 0.0
				for range 8 { // the best: whoever pays for the copies here may have to wait for a core
					got = max(got, stream(b, s, r, 4<<20, time.Second/2))
				}
				b.ReportMetric(got/(rates[0]+rates[1])/1e9, fmt.Sprintf("of-%g+%g", rates[0], rates[1]))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// stream keeps messages under way, and returns bytes/s.
func stream(t testing.TB, s, r *Comm, size int, long time.Duration) float64 {
	const window = 8
	src, dst := buffer(t, size), buffer(t, window*size)
	sb, rb := register(t, s, src, size), register(t, r, dst, window*size)
	var all [2 * window]*transfer // by twos
	begin, bytes, left := time.Now(), 0, 0
	for more := true; more || left > 0; more = time.Since(begin) < long {
		for i := 0; i < len(all); i += 2 {
			out, in := all[i], all[i+1]
			if out != nil {
				out.step()
				in.step()
				if !out.done || !in.done {
					continue
				}
				if out.code != 0 || in.code != 0 {
					t.Fatalf("codes %d and %d", out.code, in.code)
				}
				all[i], left, bytes = nil, left-1, bytes+size
			}
			if more {
				to := rb
				to.Addr, to.Size = rb.Addr+uintptr(i/2*size), uint64(size)
				all[i], all[i+1], left = send(s, sb), recv(r, to), left+1
			}
		}
	}
	took := time.Since(begin)
	for _, err := range []error{s.DeregMr(sb.Handle), r.DeregMr(rb.Handle)} {
		if err != nil {
			t.Error(err)
		}
	}
	return float64(bytes) / took.Seconds()
}
