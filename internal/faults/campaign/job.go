package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// program is what the ranks of a job run.
type program interface {
	pid(rank int) int
	// late has the rank come late to its operations from now on; lag take late what has come.
	late(rank int) error
	lag(rank int) error
	// err is why it does not go on, of which ranks themselves know.
	err() error
	stop()
}

// job is ranks that all-reduce without an end, what they say, and what they record.
type job struct {
	program
	wires
	ranks int
	dir   string

	mu   sync.Mutex
	said []said // protected by mu
}

// said is a warning of weft's.
type said struct {
	rank int
	at   time.Time
	text string
}

// profile is how jobs are watched: as docs/trace.md has it, and no faster.
var profile = []string{"WEFT_PROFILE=trace,stall", "WEFT_PROFILE_SIZE=16"}

// begin starts a job. Who calls it ends it.
func begin(network, name string, ranks int, seed uint64) (*job, error) {
	dir, err := os.MkdirTemp("", "weft-campaign-")
	if err != nil {
		return nil, err
	}
	j := &job{ranks: ranks, dir: dir}
	if j.wires, err = lay(network, ranks); err == nil {
		if name == "NCCL" {
			j.program, err = startNCCL(j)
		} else {
			j.program, err = startRing(j, seed)
		}
	}
	if err != nil {
		j.end()
		return nil, fmt.Errorf("%s over %s: %w", name, network, err)
	}
	return j, nil
}

// env is what a rank has beside its program's.
func (j *job) env(rank int) []string {
	return append(append(j.wires.env(rank), profile...), "WEFT_PROFILE_DIR="+j.traces())
}

func (j *job) traces() string { return filepath.Join(j.dir, "traces") }

// hear takes a line of a rank's log.
func (j *job) hear(rank int, text string) {
	if !strings.HasPrefix(text, "NET/weft") {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, said{rank, time.Now(), text})
}

// heard are the lines so far.
func (j *job) heard() []said {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said[:len(j.said):len(j.said)]
}

// end ends the job and takes away what is left of it.
func (j *job) end() error {
	if j.program != nil {
		j.program.stop()
	}
	var err error
	if j.wires != nil {
		err = j.wires.remove()
	}
	if gone := os.RemoveAll(j.dir); err == nil {
		err = gone
	}
	return err
}
