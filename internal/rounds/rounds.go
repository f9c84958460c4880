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

// Calmly runs a round until nobody disturbed it and the cores were as near one another as they have been, within limits, and tells
// whether the last one was disturbed. Used is the CPU time that the processes of the measurement have used so far.
func Calmly(used func() time.Duration, round func() error) (disturbed bool, err error) {
	spent := time.Duration(0)
	for i := 0; i < attempts && spent < patience; i++ {
		pause := time.Duration(i) * 100 * time.Millisecond
		time.Sleep(pause)
		near := machine.gather()
		begin, all, own := time.Now(), busy(), used()
		if err := round(); err != nil {
			return false, err
		}
		others, took := busy()-all-(used()-own), time.Since(begin)
		allowed := time.Duration(float64(took)*tolerated*float64(runtime.NumCPU())) + 20*time.Millisecond // /proc counts in 10 ms
		spent += pause + took
		if others <= allowed && !(near && machine.apart()) {
			return !near, nil
		}
	}
	return true, nil
}

// Mark is what stands behind a figure that other processes, or cores far apart, disturbed.
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
