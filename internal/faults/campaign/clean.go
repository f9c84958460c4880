package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// each does something n times, so many of them at once.
func (c *config) each(ctx context.Context, n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range c.parallel {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
}

// jobLasts is how long a job runs in which nothing is broken.
const jobLasts = 30 * time.Second

// peace has jobs run in which nothing is broken, while threads of this program keep every core busy: what weft then says of
// somebody is false.
func (c *config) peace(ctx context.Context) error {
	all, err := c.draw.faults(4 * len(kinds)) // for the places they are on
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.clean)
	defer cancel()
	for range runtime.NumCPU() {
		go spin(ctx)
	}
	var mu sync.Mutex
	jobs, reports, lines, findings := 0, 0, 0, 0
	var errs []error
	rng := rand.New(rand.NewPCG(c.draw.seed, 1))
	seeds := make([]uint64, 1<<16)
	for i := range seeds {
		seeds[i] = rng.Uint64()
	}
	began := time.Now()
	c.each(ctx, len(seeds), func(i int) {
		f := all[i%len(all)]
		asked, said, found, err := f.undone(ctx, seeds[i])
		mu.Lock()
		defer mu.Unlock()
		jobs, reports, lines, findings = jobs+1, reports+asked, lines+len(said), findings+len(found)
		if err != nil && ctx.Err() == nil {
			errs = append(errs, fmt.Errorf("%s over %s: %w", f.program, f.network, err))
		}
		for _, text := range append(said, found...) {
			fmt.Printf("%s, %d ranks over %s: %s\n", f.program, f.ranks, f.network, text)
		}
	})
	fmt.Printf("%v of jobs in which nothing was broken: %d jobs, %d reports; false: %d lines, %d findings\n", time.Since(began).Round(time.Second), jobs, reports, lines, findings)
	if lines+findings > 0 {
		errs = append(errs, errors.New("weft accused somebody where nothing was broken"))
	}
	return errors.Join(errs...)
}

// spin keeps a core busy.
func spin(ctx context.Context) {
	for i := 0; ; i++ {
		if i&(1<<20-1) == 0 && ctx.Err() != nil {
			return
		}
	}
}

// undone runs the job of a fault without it, and returns what is said of it.
func (f fault) undone(ctx context.Context, seed uint64) (reports int, lines, findings []string, err error) {
	j, err := begin(f.network, f.program, f.ranks, seed)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { err = errors.Join(err, j.end()) }()
	for end := time.Now().Add(jobLasts); time.Now().Before(end) && sleep(ctx, last) == nil; reports++ {
		_, texts, err := j.reported()
		if err != nil {
			return reports, nil, findings, err
		}
		findings = append(findings, texts...)
	}
	for _, s := range j.heard() {
		lines = append(lines, fmt.Sprintf("rank %d: %s", s.rank, s.text))
	}
	return reports, lines, findings, j.err()
}
