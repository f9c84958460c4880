package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/host"
	"weft/internal/perf"
	"weft/internal/ranks"
)

// start runs tests one after the other between the same ranks, and tells rank 0's reports.
func (o *perfFlags) start(c *cobra.Command, args []string, tests ...perf.Test) error {
	var old *perf.Report
	ctx := c.Context()
	if o.hosts.leash {
		var err error
		if ctx, err = o.hosts.leashed(ctx, c.InOrStdin()); err != nil {
			return err
		}
	}
	if len(o.hosts.list) > 0 && (len(args) > 0 || o.serve) {
		return errors.New("--hosts, --serve and HOST all say where the ends are: give one")
	}
	if err := o.check(c, args); err != nil {
		return fmt.Errorf("%w (%s -h explains)", err, c.CommandPath())
	}
	if o.compare != "" {
		f, err := os.Open(o.compare)
		if err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
		old, err = perf.Read(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("--compare %s: %w", o.compare, err)
		}
		if old.Test != o.Test {
			return fmt.Errorf("--compare %s: it is of %s, and this is %s", o.compare, old.Test, o.Test)
		}
	}
	if len(o.hosts.list) > 0 {
		return o.startOnHosts(c, old)
	}
	out := newProgress(c.ErrOrStderr())
	defer out.stop()
	o.Log = func(rank int, l host.LogLine) {
		if l.Level <= o.level {
			out.plugin(rank, l)
		}
	}
	ctx, stop := stoppable(ctx, out.Note)
	defer stop()
	reports, err := o.measure(ctx, out, tests)
	if err != nil {
		return failure{err}
	}
	out.stop()
	if reports == nil {
		return nil // rank 0 tells
	}
	return o.tell(c.OutOrStdout(), reports, old)
}

// measure returns nil where rank 0 is another process.
func (o *perfFlags) measure(ctx context.Context, out *progress, tests []perf.Test) ([]*perf.Report, error) {
	busy := func(what string) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.begins(what, what)
	}
	one := func(g ranks.Group) (reports []*perf.Report, err error) {
		for _, t := range tests {
			p := o.Options
			p.Test = t
			if o.Matrix && t == perf.Latency {
				p.Sizes = []int64{8}
			}
			r, err := perf.Run(g, p, busy)
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
		return reports, nil
	}
	if o.place == nil {
		return o.measureHere(ctx, one)
	}
	limit := o.Limit + o.Duration // ranks that are in no pair wait for a round
	if o.serve {
		limit = max(limit, 10*time.Minute) // somebody goes to the other machine
	}
	g, err := o.meet(ctx, limit, out.Note)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { g.Abort(context.Cause(ctx)) })
	defer stop()
	reports, err := one(g)
	if err != nil {
		g.Abort(err)
		text, told := g.Verdict()
		if told && o.rank > 0 && o.place.Launcher != "" {
			return nil, status(1) // rank 0 says it for all, on the same terminal
		}
		return nil, errors.New(text)
	}
	g.Leave()
	if o.rank > 0 {
		return nil, nil
	}
	return reports, nil
}

// measureHere runs every rank in this process.
func (o *perfFlags) measureHere(ctx context.Context, one func(g ranks.Group) ([]*perf.Report, error)) ([]*perf.Report, error) {
	groups := ranks.Local(o.nranks, o.Limit+o.Duration)
	stop := context.AfterFunc(ctx, func() { groups[0].Abort(context.Cause(ctx)) })
	defer stop()
	errs, all := make([]error, o.nranks), make([][]*perf.Report, o.nranks)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { all[i], errs[i] = one(g) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		text, _ := groups[0].Verdict()
		return nil, errors.New(text)
	}
	return all[0], nil
}

// startOnHosts has hosts measure, and tells here what rank 0 says: files and forms are this process's.
func (o *perfFlags) startOnHosts(c *cobra.Command, old *perf.Report) error {
	var out bytes.Buffer
	failed := o.hosts.overSSH(c, &out, []string{"json", "csv", "report_gbits", "compare", "tolerance", "html"}, "--json")
	var d perf.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.Schema != perf.Schema || len(d.Reports) == 0 {
		if failed == nil {
			failed = failure{fmt.Errorf("%s: its weft perf does not answer in this one's form: is it of another version?", o.hosts.list[0])}
		}
		return failed
	}
	return o.tell(c.OutOrStdout(), d.Reports, old)
}

// tell prints, and compares with an older report.
func (o *perfFlags) tell(w io.Writer, reports []*perf.Report, old *perf.Report) error {
	with := 0
	var unlike error
	for i, r := range reports {
		if old != nil {
			if err := r.Compare(old, o.tolerance); err != nil {
				unlike = failure{fmt.Errorf("--compare %s: %w", o.compare, err)}
			}
		}
		if r.Wrong() > 0 || len(r.Worse) > 0 {
			with = 1
		}
		var err error
		switch {
		case o.json: // all of them are one document
		case o.csv:
			err = r.CSV(w, i == 0)
		default:
			if i > 0 {
				fmt.Fprintln(w)
			}
			err = r.Text(w, perf.Style{Gbits: o.gbits})
		}
		if err != nil {
			return failure{err}
		}
	}
	if o.json {
		if err := encode(w, perf.Document{Schema: perf.Schema, Reports: reports}); err != nil {
			return failure{err}
		}
	}
	if o.html != "" {
		write := perf.WritePage
		if filepath.Ext(o.html) == ".svg" {
			write = perf.WriteMap
		}
		if err := writeWhole(o.html, func(w io.Writer) error { return write(w, reports) }); err != nil {
			return failure{err}
		}
	}
	if unlike != nil {
		return unlike
	}
	return ended(with)
}
