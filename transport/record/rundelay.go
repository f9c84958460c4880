package record

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"weft/internal/report"
	"weft/transport/record/format"
	"weft/transport/task"
)

// The windows in which a process is asked how it waits for cores. They grow with its age, so that those of any life are few.
const (
	firstWindow   = time.Second / 4
	windowsOfLife = 32  // a window is this part of the process's life so far
	leastDelayed  = 0.1 // of a window: less is not recorded
)

// watchRunDelay records the windows in which a thread of the process could run and for long had no core. What the process
// does late then is not of its own doing. It returns where the kernel does not tell (CONFIG_SCHED_INFO).
func watchRunDelay(log report.Logger) {
	defer task.Rescue(log, "record", task.Nobody)
	begun := time.Now()
	at, before := begun, runDelays(tasks)
	for len(before) > 0 {
		time.Sleep(max(firstWindow, time.Since(begun)/windowsOfLife))
		now, after := time.Now(), runDelays(tasks)
		if window, delay := now.Sub(at), longestDelay(before, after); float64(delay) >= leastDelayed*float64(window) {
			Keep(format.Record{Kind: format.RunDelay, A: uint64(window), B: uint64(min(delay, window))}, false)
		}
		at, before = now, after
	}
}

const tasks = "/proc/self/task"

// runDelays are how long each thread has waited for a core so far, from the second field of its schedstat (Linux,
// Documentation/scheduler/sched-stats.rst), ns.
func runDelays(dir string) map[int]time.Duration {
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[int]time.Duration{}
	for _, t := range threads {
		tid, errID := strconv.Atoi(t.Name())
		text, errRead := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		fields := bytes.Fields(text)
		if errID != nil || errRead != nil || len(fields) < 2 { // it has ended
			continue
		}
		if ns, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			all[tid] = time.Duration(ns)
		}
	}
	return all
}

// longestDelay is that of the thread that has waited longest between two looks.
func longestDelay(before, after map[int]time.Duration) (most time.Duration) {
	for tid, d := range after {
		if was, ok := before[tid]; ok {
			most = max(most, d-was)
		}
	}
	return most
}
