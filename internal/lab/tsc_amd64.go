package lab

import "time"

func rdtsc() uint64

// tscKHz measures the frequency of the time stamp counter: the best of a few rounds, of which another process on this CPU
// spoils some.
func tscKHz() int64 {
	best, shortest := int64(0), time.Duration(1<<62)
	for range 5 {
		before := time.Now()
		from := rdtsc()
		edge := time.Since(before)
		time.Sleep(20 * time.Millisecond)
		again := time.Now()
		to := rdtsc()
		if edge += time.Since(again); edge < shortest {
			shortest, best = edge, int64(float64(to-from)/float64(again.Sub(before).Nanoseconds())*1e6)
		}
	}
	return best
}
