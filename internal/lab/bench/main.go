// Command bench measures weft beside perftest over Soft-RoCE, inside a machine of the lab (make bench-lab): bandwidth of one
// connection beside ib_write_bw and ib_send_bw, ping-pong beside ib_send_lat and ib_write_lat, in rounds that alternate.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/rounds"
)

// config is where and how often to measure.
type config struct {
	dist    string
	devices [2]string     // of the two ends: what sends, what receives
	most    int           // rounds
	time    time.Duration // after which no further round begins, for each of bandwidth and ping-pong
	megs    int64         // moved in a round of bandwidth
	window  int           // weft's messages under way in bandwidth
	qps     []int
	calm    *calm
}

// sizes of a message.
var sizes = []int64{64 << 10, 1 << 20}

func main() {
	c := &config{qps: []int{1, 4}}
	only := flag.String("only", "bw,lat", "what to measure")
	flag.StringVar(&c.dist, "dist", "dist", "folder that make filled")
	flag.StringVar(&c.devices[0], "from", first("LAB_RDMA_A"), "RDMA device that sends")
	flag.StringVar(&c.devices[1], "to", first("LAB_RDMA_B"), "RDMA device that receives")
	flag.IntVar(&c.most, "n", 11, "rounds; medians are shown")
	flag.DurationVar(&c.time, "time", 4*time.Minute, "after which no further round of bandwidth, or of ping-pong, begins")
	flag.Int64Var(&c.megs, "mb", 8, "`MiB` moved in a round of bandwidth")
	flag.IntVar(&c.window, "window", 8, "weft's messages under way: NCCL has 8, perftest 128")
	flag.Parse()
	if err := c.run(strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// first is the first word of a list that the lab put into the environment.
func first(key string) string {
	for _, w := range strings.Fields(os.Getenv(key)) {
		return w
	}
	return ""
}

func (c *config) run(only []string) error {
	var err error
	if c.dist, err = filepath.Abs(c.dist); err != nil {
		return err
	}
	if c.devices[0] == "" || c.devices[1] == "" {
		return fmt.Errorf("no device to send from or to: run this as weft lab -- bench, or give -from and -to")
	}
	rigs := map[int]*rig{}
	defer func() {
		for _, r := range rigs {
			r.close()
		}
	}()
	for _, q := range c.qps {
		if rigs[q], err = c.newRig(q); err != nil {
			return fmt.Errorf("weft with %d queue pairs: %w", q, err)
		}
	}
	c.calm = newCalm()
	fmt.Printf("%s to %s; medians of alternating rounds, their quotients by the first line's, least and most\n", c.devices[0], c.devices[1])
	for _, what := range only {
		switch what {
		case "bw":
			err = c.bandwidth(rigs)
		case "lat":
			err = c.latency(rigs)
		default:
			err = fmt.Errorf("-only %s: want bw or lat", what)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// track is one thing measured, and its figures.
type track struct {
	name string
	run  func() (float64, error)
	all  []float64
	calm []bool // all[i] was not disturbed
}

// row is what is compared: the tracks by the first.
type row struct {
	name   string
	tracks []*track
}

// measure goes through all rows again and again, and through each row from either end in turn, until the time is up.
func (c *config) measure(rows []row) error {
	began := time.Now()
	for round := 0; round == 0 || round < c.most && time.Since(began) < c.time; round++ {
		for _, r := range rows {
			for i := range r.tracks {
				if round%2 == 1 {
					i = len(r.tracks) - 1 - i
				}
				t := r.tracks[i]
				var v float64
				disturbed, err := c.calm.run(func() (err error) {
					v, err = t.run()
					return err
				})
				if err != nil {
					return fmt.Errorf("%s, %s: %w", r.name, t.name, err)
				}
				t.all, t.calm = append(t.all, v), append(t.calm, !disturbed)
			}
		}
	}
	for _, r := range rows {
		r.print()
	}
	return nil
}

func (c *config) bandwidth(rigs map[int]*rig) error {
	fmt.Printf("\none-way bandwidth, MB/s (10^6 bytes), %d MiB each time\n", c.megs)
	var rows []row
	for _, size := range sizes {
		count := c.megs << 20 / size
		for _, q := range c.qps {
			rows = append(rows, row{fmt.Sprintf("%d KiB, %d QPs", size>>10, q), []*track{
				{name: "ib_write_bw", run: func() (float64, error) { return c.perftestBW("ib_write_bw", size, count, q) }},
				{name: "ib_send_bw", run: func() (float64, error) { return c.perftestBW("ib_send_bw", size, count, q) }},
				{name: "weft", run: func() (float64, error) { return rigs[q].bandwidth(size, count, c.window) }},
			}})
		}
	}
	return c.measure(rows)
}

func (c *config) latency(rigs map[int]*rig) error {
	fmt.Println("\nping-pong, half a round trip, us (perftest: one queue pair)")
	var rows []row
	for _, size := range sizes {
		iters := max(20, 8<<20/size)
		r := row{fmt.Sprintf("%d KiB", size>>10), []*track{
			{name: "ib_send_lat", run: func() (float64, error) { return c.perftestLat("ib_send_lat", size, iters) }},
			{name: "ib_write_lat", run: func() (float64, error) { return c.perftestLat("ib_write_lat", size, iters) }},
		}}
		for _, q := range c.qps {
			r.tracks = append(r.tracks, &track{name: fmt.Sprintf("weft, %d QPs", q), run: func() (float64, error) { return rigs[q].pingPong(size, iters) }})
		}
		rows = append(rows, r)
	}
	return c.measure(rows)
}

// enough figures that nobody disturbed stand for all.
const enough = 3

// print shows each track's median, the median of its rounds' quotients by the first track's, and the spread.
func (r row) print() {
	name := r.name // on the first line only
	for _, t := range r.tracks {
		var own, quotients []float64
		for _, calm := range []bool{true, false} { // without enough calm rounds, all
			own, quotients = nil, nil
			for k, v := range t.all {
				if t.calm[k] || !calm {
					own = append(own, v)
				}
				if t.calm[k] && r.tracks[0].calm[k] || !calm {
					quotients = append(quotients, v/r.tracks[0].all[k])
				}
			}
			if len(quotients) >= enough {
				break
			}
		}
		calm := 0
		for _, is := range t.calm {
			if is {
				calm++
			}
		}
		fmt.Printf("  %-16s %-14s %10.1f  %5.2f   %10.1f .. %-10.1f %d of %d rounds calm\n", name, t.name, rounds.Median(own), rounds.Median(quotients),
			slices.Min(t.all), slices.Max(t.all), calm, len(t.all))
		name = ""
	}
}
