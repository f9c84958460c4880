package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/internal/knob"
)

// The file of --output_file has the form that nccl-tests' -J writes, version 3 (nccl-tests 2.19, src/util.cu), so that what reads
// those reads it: yes and no are words there, and a root is a column of its table. There are no GPUs, and no NCCL whose version
// could be told.
type perfFile struct {
	Version   int          `json:"version"`
	Start     string       `json:"start_time"`
	Args      []string     `json:"args"`
	Env       []string     `json:"env"` // of NCCL, RCCL and weft: others may hold secrets
	NCCL      int          `json:"nccl_version"`
	Config    perfConfig   `json:"config"`
	Results   []perfResult `json:"results"`
	Bounds    perfBounds   `json:"out_of_bounds"`
	Bandwidth perfAverage  `json:"average_bus_bandwidth"`
	Errors    []string     `json:"errors"`
	End       string       `json:"end_time"`
}

type perfConfig struct {
	Threads    int          `json:"nthreads"`
	GPUs       int          `json:"ngpus"`
	Min        int64        `json:"minimum_bytes"`
	Max        int64        `json:"maximum_bytes"`
	Factor     int          `json:"step_factor"`
	Warm       int          `json:"warmup_iters"`
	Iterations int          `json:"iterations"`
	Aggregated int          `json:"aggregated_iterations"`
	Validation int          `json:"validation"`
	Graph      int          `json:"graph"`
	Blocking   string       `json:"blocking_collectives"`
	PerIter    string       `json:"per_iter_timing"`
	Skip       int          `json:"per_iter_skip"`
	Parallel   string       `json:"parallel_init"`
	Devices    []perfDevice `json:"devices"`
}

type perfDevice struct {
	Rank  int    `json:"rank"`
	Group int    `json:"group"`
	Info  string `json:"device_info"`
}

type perfResult struct {
	Size       int64       `json:"size"`
	Count      int64       `json:"count"`
	Type       string      `json:"type"`
	RedOp      string      `json:"redop"`
	Root       string      `json:"root"`
	Out        *perfPlaced `json:"out_of_place"`
	In         *perfPlaced `json:"in_place"`
	Iterations int         `json:"actual_iterations"`
	Experiment string      `json:"experiment_name"` // the table
}

type perfPlaced struct {
	Time  float64  `json:"time"` // us
	AlgBW float64  `json:"alg_bw"`
	BusBW float64  `json:"bus_bw"`
	Wrong *float64 `json:"nwrong"` // null: not checked
}

type perfBounds struct {
	Count int64  `json:"count"`
	Okay  string `json:"okay"`
}

type perfAverage struct {
	Bandwidth float64 `json:"bandwidth"`
	Okay      string  `json:"okay"`
}

const perfTime = "2006-01-02 15:04:05"

// outputFile makes a new file of that name or, as nccl-tests do, of the name with the first number behind it that none has.
func outputFile(name string) (*os.File, error) {
	path := name
	for n := 0; ; n++ {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			return f, err
		}
		path = fmt.Sprintf("%s.%d", name, n)
	}
}

// withoutToken is a command line without its secret.
func withoutToken(args []string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		if a == "--token" && i+1 < len(args) {
			args[i+1] = "..."
		} else if strings.HasPrefix(a, "--token=") {
			args[i] = "--token=..."
		}
	}
	return args
}

// perfFile is what a run came to.
func (r *report) perfFile(begin, end time.Time, failed error) *perfFile {
	o := r.o
	p := &perfFile{Version: 3, Start: begin.Format(perfTime), End: end.Format(perfTime), Args: withoutToken(os.Args), Env: []string{}, Results: []perfResult{}, Errors: []string{}}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		of := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case !of("NCCL_") && !of("RCCL_") && !of("WEFT_"):
		case knob.Secret(name) || name == runToken:
			p.Env = append(p.Env, name+"=(secret)")
		default:
			p.Env = append(p.Env, v)
		}
	}
	if failed != nil {
		p.Errors = append(p.Errors, failed.Error())
	}
	checks := 1
	if o.coll != nil {
		checks = o.coll.Checks
	}
	p.Config = perfConfig{Threads: 1, Factor: o.factor, Warm: o.warm, Iterations: o.iters, Aggregated: 1, Validation: checks, Blocking: "false", PerIter: "false", Parallel: "false"}
	for i, size := range o.sizes {
		if i == 0 || size < p.Config.Min {
			p.Config.Min = size
		}
		p.Config.Max = max(p.Config.Max, size)
	}
	sum, measured := 0.0, 0
	placed := func(time, alg, bus float64, wrong int64) *perfPlaced {
		v := &perfPlaced{Time: time, AlgBW: alg, BusBW: bus}
		if checks > 0 {
			n := float64(wrong)
			v.Wrong = &n
		}
		sum, measured, p.Bounds.Count = sum+bus, measured+1, p.Bounds.Count+wrong
		return v
	}
	root := func(n int) string { return fmt.Sprintf("%6d", n) }
	for i, t := range r.tables {
		if i == 0 {
			for rank := range t.Ranks {
				p.Config.Devices = append(p.Config.Devices, perfDevice{rank, 0, t.Device})
			}
		}
		for _, res := range t.Results { // a ring's sums lie beside its data
			p.Results = append(p.Results, perfResult{res.Size, res.Count, "float", "sum", root(-1), placed(res.Time, res.AlgBW, res.BusBW, res.Wrong), nil, res.Iters, t.Table})
		}
		if t.Broadcast != nil && r.wrongSums(t.Broadcast) > 0 {
			p.Errors = append(p.Errors, "the file arrived with other bytes: "+o.input)
		}
		for _, c := range t.Collectives {
			out, in := c.Out, c.In
			p.Results = append(p.Results, perfResult{c.Size, c.Count, c.Type, c.RedOp, root(c.Root),
				placed(out.Time, out.AlgBW, out.BusBW, out.Wrong), placed(in.Time, in.AlgBW, in.BusBW, in.Wrong), c.Iters, t.Table})
		}
	}
	p.Bounds.Okay = strconv.FormatBool(failed == nil && r.ok())
	p.Bandwidth = perfAverage{sum / float64(max(measured, 1)), "unchecked"}
	return p
}

// writeOutput fills the file that --output_file named.
func (r *report) writeOutput(failed error) error {
	if r.file == nil {
		return nil
	}
	e := json.NewEncoder(r.file)
	e.SetIndent("", "  ")
	if err := errors.Join(e.Encode(r.perfFile(r.begun, time.Now(), failed)), r.file.Close()); err != nil {
		return fmt.Errorf("--output_file: %w", err)
	}
	return nil
}
