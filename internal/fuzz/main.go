// Command fuzz uses the library as no host should, for as long as it is told: the calls of its tables, right and wrong ones
// mixed, and every decoder that has a Go fuzz test. It copies what it runs, so that the tree may change meanwhile.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var (
		limit = flag.Duration("time", 10*time.Second, "how long to fuzz, building apart")
		only  = flag.String("only", "", "tables or decoders; both by default, the tables for half of the time")
		seed  = flag.Int64("seed", -1, "play the round of table calls of this seed, as often as there is time; -1: rounds from 0 on")
		calls = flag.Int("calls", 100000, "calls of a round")
		keep  = flag.String("keep", "", "the folder for the programs of table calls: taken from there if they are there, else built and left there")
		plain = flag.Bool("plain", false, "without the address sanitizer")
	)
	flag.Parse()
	if err := fuzz(*limit, *only, *seed, *calls, *keep, *plain); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func fuzz(limit time.Duration, only string, seed int64, calls int, keep string, plain bool) error {
	if only != "" && only != "tables" && only != "decoders" {
		return fmt.Errorf("-only %s: want tables or decoders", only)
	}
	dir, err := os.MkdirTemp("", "weft-fuzz-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if seed >= 0 {
		only = "tables"
	}
	var p programs
	var targets []target
	if only != "decoders" {
		if keep == "" {
			keep = dir
		}
		if p = programsIn(keep); !p.built() {
			err = compile(keep, plain)
		}
		if err != nil {
			return err
		}
	}
	if only != "tables" {
		if targets, err = decoders(filepath.Join(dir, "decoders")); err != nil {
			return err
		}
	}
	share := limit
	if only == "" {
		share /= 2
	}
	if only != "decoders" {
		if err := fuzzTables(p, share, seed, calls); err != nil {
			return err
		}
	}
	if only != "tables" {
		return fuzzDecoders(targets, share)
	}
	return nil
}

// fuzzTables plays rounds until the time is up, and says once a minute how far it has come.
func fuzzTables(p programs, limit time.Duration, seed int64, calls int) error {
	var c counts
	begin := time.Now()
	said := begin
	for n := uint64(0); n == 0 || time.Since(begin) < limit; n++ {
		r := round{seed: n, calls: calls}
		if seed >= 0 {
			r.seed = uint64(seed)
		}
		if err := p.run(r, &c); err != nil {
			return fmt.Errorf("table calls: %w\nagain: make fuzz ONLY=tables SEED=%d CALLS=%d\nuntil then: %s", err, r.seed, calls, c)
		}
		if time.Since(said) >= time.Minute {
			said = time.Now()
			fmt.Printf("fuzz: %v: %s\n", said.Sub(begin).Truncate(time.Second), c)
		}
	}
	fmt.Printf("fuzz: table calls, %v: %s\n", time.Since(begin).Truncate(time.Second), c)
	return nil
}
