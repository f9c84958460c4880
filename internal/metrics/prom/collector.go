package prom

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/metrics"
	"weft/internal/metrics/cards"
	"weft/internal/owner"
)

// Collector reads the files anew each time it is asked.
type Collector struct {
	Names []string    // files, and folders of files
	Proc  string      // /proc
	Sys   string      // /sys
	Host  string      // whose cards are in Sys
	Say   func(error) // what could not be read, once each; nil: nobody is told
	Note  func(error) // the same of processes that have ended, and folders without files

	mu   sync.Mutex
	said map[string]bool // protected by mu
	read int             // protected by mu: files, the last time
}

// Read is how many files could be read, the last time.
func (c *Collector) Read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

// Describe names all that there may be.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// Collect reads them.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	here, now := owner.Here(c.Proc), time.Now() // before the files: what they tell is from then on
	files, bad, err := metrics.Load(c.Names)
	if err != nil {
		bad = append(bad, err)
	}
	for _, err := range bad {
		c.say(c.Say, err)
	}
	for _, note := range metrics.Missing(c.Names) {
		c.say(c.Note, note)
	}
	c.mu.Lock()
	c.read = len(files)
	c.mu.Unlock()
	to <- prometheus.MustNewConstMetric(unreadables, prometheus.GaugeValue, float64(len(bad)))
	some, twice := unique(files)
	for _, f := range twice {
		c.say(c.Note, fmt.Errorf("%s: a later process has its host and number, so that its metrics would have the same labels: it is left out", f.Path))
	}
	for _, f := range some {
		life := metrics.LifeOf(f, here, now)
		if life != metrics.Runs {
			c.say(c.Note, fmt.Errorf("%s: its process %s; what it has counted is shown until the file is removed", f.Path, told[life]))
		}
		process(f, life, to)
	}
	for _, e := range cards.Read(c.Sys) {
		to <- prometheus.MustNewConstMetric(portEvents, prometheus.CounterValue, float64(e.Value), c.Host, e.Device, e.Port, e.Event, e.Counter)
	}
}

var told = map[metrics.Life]string{metrics.Ended: "has ended", metrics.Stopped: "is stopped", metrics.Silent: "has shown no sign of life"}

func (c *Collector) say(to func(error), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to == nil || c.said[err.Error()] {
		return
	}
	if c.said == nil {
		c.said = map[string]bool{}
	}
	c.said[err.Error()] = true
	to(err)
}

// unique leaves one file of processes that have the same labels, as those of two
// containers of a host may: of the one that ran last. The others are twice.
func unique(files []*metrics.File) (some, twice []*metrics.File) {
	type process struct {
		host string
		pid  uint64
	}
	at := map[process]int{}
	for _, f := range files {
		of := process{f.Host, f.PID}
		i, known := at[of]
		if !known {
			at[of] = len(some)
			some = append(some, f)
			continue
		}
		if f.Time(f.Alive).After(some[i].Time(some[i].Alive)) {
			f, some[i] = some[i], f
		}
		twice = append(twice, f)
	}
	return some, twice
}

// process exports what a process has counted.
func process(f *metrics.File, life metrics.Life, to chan<- prometheus.Metric) {
	rank, ranks := "", ""
	if f.Ranks > 0 {
		rank, ranks = strconv.Itoa(f.Rank), strconv.Itoa(f.Ranks)
	}
	who := []string{f.Host, strconv.FormatUint(f.PID, 10), rank}
	put := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, append(append([]string{}, who...), more...)...)
	}
	runs := 0.0
	if life == metrics.Runs {
		runs = 1
	}
	put(alive, prometheus.GaugeValue, runs)
	put(lastAlive, prometheus.GaugeValue, float64(f.Time(f.Alive).UnixMilli())/1e3)
	put(info, prometheus.GaugeValue, 1, ranks, f.Build, string(life))
	put(uncounted, prometheus.CounterValue, float64(f.Uncounted))
	put(stalls, prometheus.CounterValue, float64(f.Stalls))
	if life != metrics.Ended {
		put(stalled, prometheus.GaugeValue, float64(f.Stalled))
	}
	for _, s := range f.Sums() {
		ends := []string{s.Direction(), s.Network(), s.Device, s.Peer, strconv.FormatUint(uint64(s.PeerPID), 10), s.PeerDevice}
		link(s, life, func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
			put(d, kind, v, append(append([]string{}, ends...), more...)...)
		})
		below := map[float64]uint64{}
		for _, ns := range bounds {
			below[float64(ns)/1e9] = s.Counts.Below(ns)
		}
		to <- prometheus.MustNewConstHistogram(seconds, s.Counts.Timed(), float64(s.Counts.Time)/1e9, below, append(append([]string{}, who...), ends...)...)
	}
}

// link exports what links between two devices have counted. Of a process that has
// ended, nothing is open.
func link(s *metrics.Sum, life metrics.Life, put func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string)) {
	c := &s.Counts
	put(messages, prometheus.CounterValue, float64(c.Messages))
	put(moved, prometheus.CounterValue, float64(c.Bytes))
	put(failures, prometheus.CounterValue, float64(c.Failed))
	put(closed, prometheus.CounterValue, float64(c.Closed))
	put(broken, prometheus.CounterValue, float64(c.Broken))
	if s.Sends {
		put(waits, prometheus.CounterValue, float64(c.Waits))
		put(waited, prometheus.CounterValue, float64(c.Waited)/1e9)
	}
	for i, n := range c.LaneBytes {
		if n > 0 {
			put(laneBytes, prometheus.CounterValue, float64(n), strconv.Itoa(i))
		}
	}
	if life == metrics.Ended {
		return
	}
	put(open, prometheus.GaugeValue, float64(s.Connections))
	put(lanes, prometheus.GaugeValue, float64(s.Lanes))
	put(inFlight, prometheus.GaugeValue, float64(s.InFlight))
	if s.Sends {
		put(waiting, prometheus.GaugeValue, float64(s.Waiting))
	}
}
