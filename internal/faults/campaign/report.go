package main

import (
	"fmt"
	"regexp"
	"time"

	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/internal/trace/summary"
)

// last is how much of the job a report is about.
const last = 3 * time.Second

// isSlow is what weft trace report says of a process that takes late what comes.
const isSlow = "slow receiver"

var process = regexp.MustCompile(`\S+:(\d+)`)

// reported is what weft trace report says of the job now.
func (j *job) reported() (all []charge, texts []string, err error) {
	files, bad, err := trace.Load([]string{j.traces()})
	if err == nil && len(bad) > 0 {
		err = bad[0]
	}
	if err != nil {
		return nil, nil, err
	}
	t := model.New(files)
	t.KeepLast(last)
	for _, f := range summary.New(t).Findings {
		var pids []int
		for _, m := range process.FindAllStringSubmatch(f.What, -1) {
			pids = append(pids, number(m[1]))
		}
		c := charge{what: map[string]string{"straggler": isLate, "slow-link": path, "slow-process": isSlow}[f.Kind]}
		switch len(pids) {
		case 2:
			c.to = pids[1]
			fallthrough
		case 1:
			c.pid = pids[0]
		default:
			return nil, nil, fmt.Errorf("a finding names %d processes: %s", len(pids), f.What)
		}
		all, texts = append(all, c), append(texts, f.What+": "+f.Evidence)
	}
	return all, texts, nil
}
