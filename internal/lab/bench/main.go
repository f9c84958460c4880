// Command bench measures weft beside perftest over Soft-RoCE, inside a machine of the lab (make bench-lab): bandwidth of one
// connection beside ib_write_bw, ping-pong beside ib_send_lat and ib_write_lat, in rounds that alternate.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// config is where and how often to measure.
type config struct {
	dist    string
	devices [2]string // of the two ends: what sends, what receives
	rounds  int
	megs    int64 // moved in a round of bandwidth
	qps     []int
}

// sizes of a message.
var sizes = []int64{64 << 10, 1 << 20}

func main() {
	c := &config{qps: []int{1, 4}}
	only := flag.String("only", "bw,lat", "what to measure")
	flag.StringVar(&c.dist, "dist", "dist", "folder of the library and weft-host")
	flag.StringVar(&c.devices[0], "from", first("LAB_RDMA_A"), "RDMA device that sends")
	flag.StringVar(&c.devices[1], "to", first("LAB_RDMA_B"), "RDMA device that receives")
	flag.IntVar(&c.rounds, "n", 7, "rounds; medians are shown")
	flag.Int64Var(&c.megs, "mb", 48, "`MiB` moved in a round of bandwidth")
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
	fmt.Printf("%s to %s, %d alternating rounds, medians; in brackets the median of the rounds' quotients by the first column\n", c.devices[0], c.devices[1], c.rounds)
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

// track is one thing measured.
type track struct {
	name string
	run  func() (float64, error)
}

// alternate measures all tracks in every round, from either end in turn, and returns the figures by track.
func (c *config) alternate(tracks []track) ([][]float64, error) {
	figures := make([][]float64, len(tracks))
	for round := range c.rounds {
		for i := range tracks {
			if round%2 == 1 {
				i = len(tracks) - 1 - i
			}
			v, err := tracks[i].run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", tracks[i].name, err)
			}
			figures[i] = append(figures[i], v)
		}
	}
	return figures, nil
}

func (c *config) bandwidth(rigs map[int]*rig) error {
	fmt.Printf("\none-way bandwidth, MB/s (10^6 bytes), %d MiB a round\n", c.megs)
	for _, size := range sizes {
		count := c.megs << 20 / size
		for _, q := range c.qps {
			f, err := c.alternate([]track{
				{"ib_write_bw", func() (float64, error) { return c.writeBW(size, count, q) }},
				{"weft", func() (float64, error) { return rigs[q].bandwidth(size, count) }},
			})
			if err != nil {
				return err
			}
			line(size, q, []string{"ib_write_bw", "weft"}, f)
		}
	}
	return nil
}

func (c *config) latency(rigs map[int]*rig) error {
	fmt.Println("\nping-pong, half a round trip, us (perftest: one queue pair)")
	for _, size := range sizes {
		iters := max(40, 16<<20/size)
		tracks := []track{
			{"ib_send_lat", func() (float64, error) { return c.perftestLat("ib_send_lat", size, iters) }},
			{"ib_write_lat", func() (float64, error) { return c.perftestLat("ib_write_lat", size, iters) }},
		}
		names := []string{"ib_send_lat", "ib_write_lat"}
		for _, q := range c.qps {
			name := fmt.Sprintf("weft %d QPs", q)
			names = append(names, name)
			tracks = append(tracks, track{name, func() (float64, error) { return rigs[q].pingPong(size, iters) }})
		}
		f, err := c.alternate(tracks)
		if err != nil {
			return err
		}
		line(size, 0, names, f)
	}
	return nil
}

// line prints a row: medians, quotients by the first column, and the spread.
func line(size int64, qps int, names []string, figures [][]float64) {
	fmt.Printf("%8d B", size)
	if qps > 0 {
		fmt.Printf(" %d QPs", qps)
	}
	for i, f := range figures {
		fmt.Printf("   %s %.1f", names[i], median(f))
		if i > 0 {
			var q []float64
			for k := range f {
				q = append(q, f[k]/figures[0][k])
			}
			fmt.Printf(" (%.2f)", median(q))
		}
		fmt.Printf(" [%.1f..%.1f]", slices.Min(f), slices.Max(f))
	}
	fmt.Println()
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
