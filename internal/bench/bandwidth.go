package main

import (
	"fmt"
	"path/filepath"

	"weft/internal/host"
)

// track is one thing measured: a name and a measurement of one round.
type track struct {
	name string
	run  func(size, count int64) (float64, error)
}

// maxSize is the largest message.
const maxSize = 64 << 20

// bandwidth compares GB/s of one connection, sender on one core, receiver on the other; the rounds of all tracks alternate.
func bandwidth(c *config) error {
	var tracks []track
	var rigs []*rig
	var hosts []*host.Host
	defer func() {
		for _, r := range rigs {
			r.close()
		}
	}()
	for _, plugin := range c.plugins() {
		r, err := c.newRig(plugin)
		if err != nil {
			return err
		}
		rigs, hosts = append(rigs, r), append(hosts, r.a, r.b)
		if len(tracks) == 0 {
			t, err := r.plainTrack()
			if err != nil {
				return err
			}
			tracks = append(tracks, t)
		}
		t, err := r.pluginTrack(filepath.Base(plugin))
		if err != nil {
			return err
		}
		tracks = append(tracks, t)
	}
	fmt.Printf("%12s", "bytes")
	for _, t := range tracks {
		fmt.Printf("  %24s", t.name)
	}
	fmt.Println("   (GB/s; in brackets: of the plain loop; ~: other processes took more than 5 % of the machine)")
	for size := int64(128 << 10); size <= maxSize; size *= 2 {
		count := max(256<<20/size, 8)
		figures, noisy := make([][]float64, len(tracks)), make([]int, len(tracks))
		for range c.rounds {
			for i, t := range tracks {
				var us float64
				disturbed, err := calmly(hosts, func() (err error) {
					us, err = t.run(size, count)
					return err
				})
				if err != nil {
					return fmt.Errorf("%s, %d bytes: %w", t.name, size, err)
				}
				if disturbed {
					noisy[i]++
				}
				figures[i] = append(figures[i], float64(size*count)/us/1e3)
			}
		}
		fmt.Printf("%12d", size)
		for i, f := range figures {
			fmt.Printf("  %15.2f%1s (%5.2f)", median(f), mark(noisy[i]), median(f)/median(figures[0]))
		}
		fmt.Println()
	}
	return nil
}

func (c *config) plugins() []string {
	list := []string{c.library()}
	if c.vs != "" {
		list = append(list, c.vs)
	}
	return list
}

func (r *rig) plainTrack() (track, error) {
	fdA, fdB, err := r.plain()
	if err != nil {
		return track{}, err
	}
	bufA, err := r.a.Alloc(maxSize)
	if err != nil {
		return track{}, err
	}
	bufB, err := r.b.Alloc(maxSize)
	if err != nil {
		return track{}, err
	}
	return track{"plain C loop", func(size, count int64) (float64, error) {
		_, rb, err := r.both("plain.bw", host.Args{"role", "send", "fd", fdA, "buf", bufA, "size", size, "span", min(8*size, maxSize), "count", count, "limit", limit / 2},
			"plain.bw", host.Args{"role", "recv", "fd", fdB, "buf", bufB, "size", size, "span", min(8*size, maxSize), "count", count, "limit", limit / 2})
		return rb.Float("us"), err
	}}, nil
}

func (r *rig) pluginTrack(name string) (track, error) {
	send, recv, err := connect(r.na, r.nb, r.a, r.b)
	if err != nil {
		return track{}, err
	}
	bufA, mhA, err := buffer(r.a, r.na, send, maxSize)
	if err != nil {
		return track{}, err
	}
	bufB, mhB, err := buffer(r.b, r.nb, recv, maxSize)
	if err != nil {
		return track{}, err
	}
	return track{name, func(size, count int64) (float64, error) {
		_, rb, err := r.both("bw", host.Args{"role", "send", "comm", send, "mh", mhA, "buf", bufA, "size", size, "span", min(8*size, maxSize), "count", count, "limit", limit / 2},
			"bw", host.Args{"role", "recv", "comm", recv, "mh", mhB, "buf", bufB, "size", size, "span", min(8*size, maxSize), "count", count, "limit", limit / 2})
		return rb.Float("us"), err
	}}, nil
}
