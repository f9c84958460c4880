package ras

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"weft/internal/owner"
)

// document is RAS's answer in JSON.
type document struct {
	Version       string `json:"nccl_version"`
	Communicators []struct {
		Hash    string
		Ranks   []rank
		Missing []missing `json:"missing_ranks"`
	}
	RAS *struct {
		Timeouts int `json:"timeouts_count"`
	}
}

type place struct {
	Rank int32
	Host string
	PID  int64
}

type rank struct {
	place
	Status struct {
		Init     int  `json:"init_state"`
		Async    int  `json:"async_error"`
		Finalize bool `json:"finalize_called"`
		Destroy  bool `json:"destroy_flag"`
		Abort    bool `json:"abort_flag"`
	}
	Counts map[string]uint64 `json:"collective_counts"`
}

type missing struct {
	place
	Status struct {
		Unresponsive bool
		Dead         bool `json:"considered_dead"`
	}
}

func (p place) who() Who {
	w := Who{Rank: max(p.Rank, -1), Host: owner.Plain([]byte(p.Host)), PID: max(p.PID, 0)}
	if w.PID == 0 {
		w.Host = ""
	}
	return w
}

func parseJSON(text []byte) (*Answer, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("its answer is not the JSON that it should be: %w", err)
	}
	if d.RAS == nil {
		return nil, fmt.Errorf("its answer is not RAS's: it begins %q", text[:min(len(text), 64)])
	}
	a := &Answer{Version: owner.Plain([]byte(d.Version)), Communicators: []uint64{}, Findings: []Finding{}, Timeouts: d.RAS.Timeouts}
	for _, c := range d.Communicators {
		id, err := strconv.ParseUint(c.Hash, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("it has a communicator whose hash is %q", c.Hash)
		}
		a.Communicators = append(a.Communicators, id)
		for _, m := range c.Missing {
			kind := Silent
			switch {
			case m.Status.Dead:
				kind = Dead
			case !m.Status.Unresponsive:
				kind = Absent
			}
			a.add(Finding{Kind: kind, Communicator: id}, m.who())
		}
		a.failed(id, c.Ranks)
		a.states(id, c.Ranks)
		a.counts(id, c.Ranks)
	}
	return a, nil
}

// inProgress is the result of a call that goes on in the background.
const inProgress = 7

// results are NCCL's, as its RAS calls them in text.
var results = map[int]string{
	1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument",
	5: "Invalid usage", 6: "Remote process error",
}

func (a *Answer) failed(id uint64, ranks []rank) {
	for _, r := range ranks {
		for _, result := range []int{r.Status.Init, r.Status.Async} {
			if result != 0 && result != inProgress {
				why := results[result]
				if why == "" {
					why = "Unexpected error"
				}
				a.add(Finding{Kind: Failed, Communicator: id, Why: why}, r.who())
			}
		}
	}
}

func (r rank) state() string {
	switch s := r.Status; {
	case s.Abort:
		return "ABORT"
	case s.Finalize || s.Destroy:
		return "FINALIZE"
	case s.Init == 0:
		return "RUNNING"
	}
	return "INIT"
}

// states names those that are in another state than most.
func (a *Answer) states(id uint64, ranks []rank) {
	count := map[string]int{}
	for _, r := range ranks {
		count[r.state()]++
	}
	if len(count) < 2 {
		return
	}
	names := slices.Sorted(maps.Keys(count))
	most := slices.MaxFunc(names, func(a, b string) int { return count[a] - count[b] })
	for _, r := range ranks {
		if s := r.state(); s != most {
			a.add(Finding{Kind: State, Communicator: id, Why: s}, r.who())
		}
	}
}

func (a *Answer) counts(id uint64, ranks []rank) {
	most := map[string]uint64{}
	for _, r := range ranks {
		for fn, n := range r.Counts {
			most[fn] = max(most[fn], n)
		}
	}
	for _, fn := range slices.Sorted(maps.Keys(most)) {
		for _, r := range ranks {
			if n := r.Counts[fn]; n < most[fn] {
				w := r.who()
				w.Launched = n
				a.add(Finding{Kind: Behind, Communicator: id, Why: owner.Plain([]byte(fn)), Most: most[fn]}, w)
			}
		}
	}
}
