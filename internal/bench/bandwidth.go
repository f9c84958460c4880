package main

import (
	"fmt"
	"path/filepath"

	"weft/internal/host"
	"weft/internal/rounds"
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
		plain, own, err := r.tracks(filepath.Base(plugin))
		if err != nil {
			return err
		}
		tracks = append(tracks, plain, own)
	}
	fmt.Printf("%12s", "bytes")
	for _, t := range tracks {
		fmt.Printf("  %24s", t.name)
	}
	fmt.Println("   (GB/s; in brackets: of the plain loop; ~: other processes took more than 5 % of the machine)")
	for size := int64(128 << 10); size <= maxSize; size *= 2 {
		count := max(256<<20/size, 8)
		figures, noisy := make([][]float64, len(tracks)), make([]int, len(tracks))
		for round := range c.rounds {
			for i := range tracks {
				if round%2 == 1 { // who goes second finds the memory warm
					i = len(tracks) - 1 - i
				}
				t := tracks[i]
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
			fmt.Printf("  %15.2f%1s (%5.2f)", rounds.Median(f), rounds.Mark(noisy[i]), rounds.Median(f)/rounds.Median(figures[i&^1])) // each plugin beside the plain loop of its own processes
		}
		fmt.Println()
	}
	return nil
}

// tracks measures the plugin and, through the same memory of the same two processes, a plain loop: where pages lie
// makes a difference of a tenth between two pairs of processes.
func (r *rig) tracks(name string) (plain, own track, err error) {
	fdA, fdB, err := r.plain()
	if err != nil {
		return plain, own, err
	}
	send, recv, err := connect(r.na, r.nb, r.a, r.b)
	if err != nil {
		return plain, own, err
	}
	bufA, mhA, err := buffer(r.a, r.na, send, maxSize)
	if err != nil {
		return plain, own, err
	}
	bufB, mhB, err := buffer(r.b, r.nb, recv, maxSize)
	if err != nil {
		return plain, own, err
	}
	moved := func(loop string, a, b host.Args) func(size, count int64) (float64, error) {
		return func(size, count int64) (float64, error) {
			both := host.Args{"size", size, "span", min(8*size, maxSize), "count", count, "limit", limit / 2}
			_, rb, err := r.both(loop, append(append(host.Args{"role", "send", "buf", bufA}, a...), both...),
				loop, append(append(host.Args{"role", "recv", "buf", bufB}, b...), both...))
			return rb.Float("us"), err
		}
	}
	plain = track{"plain C loop", moved("plain.bw", host.Args{"fd", fdA}, host.Args{"fd", fdB})}
	own = track{name, moved("bw", host.Args{"comm", send, "mh", mhA}, host.Args{"comm", recv, "mh", mhB})}
	return plain, own, nil
}
