package task

import (
	"sync"

	"weft/internal/report"
)

// Errands are work of the background that is done piece by piece, in a goroutine
// that ends with the last.
type Errands struct {
	mu    sync.Mutex
	works bool     // protected by mu, as all below
	jobs  []func() // not begun
}

// Add returns how many wait, with this one.
func (b *Errands) Add(log report.Logger, job func()) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = append(b.jobs, job)
	if !b.works {
		b.works = true
		go b.work(log)
	}
	return len(b.jobs)
}

func (b *Errands) work(log report.Logger) {
	defer Rescue(log, "background", func(error) { go b.work(log) })
	for job := b.next(); job != nil; job = b.next() {
		job()
	}
}

func (b *Errands) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.jobs) == 0 {
		b.works, b.jobs = false, nil
		return nil
	}
	job := b.jobs[0]
	b.jobs[0] = nil
	b.jobs = b.jobs[1:]
	return job
}
