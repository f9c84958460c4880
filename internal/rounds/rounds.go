// Package rounds is for what is measured again and again: the median of it, and whether other processes disturbed a round.
package rounds

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A measurement counts only when other processes used little of the machine meanwhile: a busy-polling loop that shares its
// core measures the scheduler. Disturbed rounds are repeated; what remains disturbed is marked.
const (
	attempts  = 8
	patience  = 5 * time.Second // for the repetitions of one round
	tolerated = 0.05            // of all cores
)

// busy is the CPU time of the whole machine since boot; 0 when /proc does not say.
func busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var user, nice, system, idle, iowait, irq, softirq int64
	if n, _ := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq); n != 7 {
		return 0
	}
	return time.Duration(user+nice+system+irq+softirq) * 10 * time.Millisecond
}

// Calmly runs a round until nobody disturbed it, within limits, and tells whether the last one was disturbed. Used is the
// CPU time that the processes of the measurement have used so far.
func Calmly(used func() time.Duration, round func() error) (disturbed bool, err error) {
	for i, first := 0, time.Now(); i < attempts && time.Since(first) < patience; i++ {
		if i > 0 {
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		}
		begin, all, own := time.Now(), busy(), used()
		if err := round(); err != nil {
			return false, err
		}
		others := busy() - all - (used() - own)
		allowed := time.Duration(float64(time.Since(begin))*tolerated*float64(runtime.NumCPU())) + 20*time.Millisecond // /proc counts in 10 ms
		if others <= allowed {
			return false, nil
		}
	}
	return true, nil
}

// Mark is what stands behind a figure that other processes disturbed.
func Mark(disturbed int) string {
	if disturbed > 0 {
		return "~"
	}
	return ""
}

// Median of what was measured; 0 of nothing.
func Median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
