package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/doctor"
)

// askHosts has weft doctor run on each host by ssh, and probe the paths between those that answer. Who does not answer is told with
// the reason.
func (o *doctorOptions) askHosts(c *cobra.Command) (hosts []doctor.Host, unasked []string, err error) {
	start, program, err := o.hosts.command()
	if err != nil {
		return nil, nil, err
	}
	line := fmt.Sprintf("exec %s doctor --leash --local --json --look=%v --timeout=%v", doctor.ShellQuote(program), o.between, o.timeout)
	all, found, why := make([]*askedHost, len(o.hosts.list)), make([]*doctor.Host, len(o.hosts.list)), make([]error, len(o.hosts.list))
	var wg sync.WaitGroup
	for i, host := range o.hosts.list {
		wg.Go(func() {
			if all[i], why[i] = ask(c.Context(), append(slices.Clone(start), host, line), o.timeout+slowSSH); why[i] == nil {
				found[i], why[i] = all[i].report()
			}
		})
	}
	wg.Wait()
	var asked []*askedHost
	for i, host := range o.hosts.list {
		switch {
		case why[i] != nil:
			unasked = append(unasked, fmt.Sprintf("%s: %v", host, why[i]))
		default:
			hosts, asked = append(hosts, *found[i]), append(asked, all[i])
		}
	}
	for i, paths := range doctor.Paths(hosts) {
		wg.Go(func() { hosts[i].Paths = asked[i].probe(paths) })
	}
	wg.Wait()
	for i, a := range asked { // each has answered the others' probes until here
		hosts[i].Answers = nil
		wg.Go(a.end)
	}
	wg.Wait()
	return hosts, unasked, nil
}

// slowSSH is what a host may take beyond its doctor's own limit.
const slowSSH = 15 * time.Second

// askedHost is the weft doctor that ssh has started on a host. It tells its report, is told which paths to probe, tells what passes, and
// answers the probes of others until its stdin ends.
type askedHost struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	late   *time.Timer // until it has told its report
	in     io.WriteCloser
	out    *io.PipeReader
	said   *json.Decoder
	errOut bytes.Buffer
	gone   chan struct{}
	failed error // when gone
}

func ask(ctx context.Context, args []string, limit time.Duration) (a *askedHost, err error) {
	a = &askedHost{gone: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	cmd := exec.CommandContext(a.ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, &a.errOut
	a.out, a.said = out, json.NewDecoder(out)
	if a.in, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.cancel(nil)
		return nil, err
	}
	a.late = time.AfterFunc(limit, func() { a.cancel(fmt.Errorf("no answer within %v", limit)) })
	go func() {
		a.failed = cmd.Wait()
		w.Close()
		close(a.gone)
	}()
	return a, nil
}

// report is what the host says of itself. It has ended where there is an error.
func (a *askedHost) report() (*doctor.Host, error) {
	_, _ = a.in.Write(variables(os.Environ(), "")) // a host that has ended says why
	var r doctor.Report
	if err := a.said.Decode(&r); err == nil && r.Schema == doctor.Schema && len(r.Hosts) == 1 && a.late.Stop() {
		return &r.Hosts[0], nil
	}
	a.end()
	said := strings.TrimSpace(a.errOut.String())
	said = said[strings.LastIndexByte(said, '\n')+1:] // behind a banner
	switch {
	case a.ctx.Err() != nil && context.Cause(a.ctx) != context.Canceled:
		return nil, context.Cause(a.ctx)
	case said != "":
		return nil, errors.New(said)
	case a.failed != nil:
		return nil, a.failed
	}
	return nil, errors.New("its weft doctor does not answer in this one's form: is it of another version?")
}

// slowProbe is what a host may take to tell of its probes.
const slowProbe = doctor.ProbeLimit + 3*time.Second

// probe has the host probe paths, and returns them with what it has found.
func (a *askedHost) probe(paths []doctor.Path) []doctor.Path {
	if len(paths) == 0 {
		return nil
	}
	defer time.AfterFunc(slowProbe, func() { a.cancel(fmt.Errorf("no word of its probes within %v", slowProbe)) }).Stop()
	var probed []doctor.Path
	err := json.NewEncoder(a.in).Encode(paths)
	if err == nil {
		err = a.said.Decode(&probed)
	}
	if err == nil && len(probed) == len(paths) {
		return probed
	}
	for i := range paths {
		paths[i].Unprobed = "the host's weft doctor has ended before it had probed"
	}
	return paths
}

// end has the host's weft doctor end, and waits for it.
func (a *askedHost) end() {
	a.in.Close()
	a.out.Close()
	defer a.cancel(nil)
	defer time.AfterFunc(slowProbe, func() { a.cancel(errors.New("it does not end")) }).Stop()
	<-a.gone
}

// answer is the host's side: h tells of itself, probes what stdin names, and answers others until stdin ends.
func (o *doctorOptions) answer(c *cobra.Command, h doctor.Host) error {
	defer h.Answer().Close()
	ctx, cancel := context.WithTimeout(c.Context(), o.timeout+slowSSH+slowProbe) // others may be as late as that
	defer cancel()
	if err := encode(c.OutOrStdout(), doctor.NewReport(h)); err != nil {
		return err
	}
	asked := make(chan []doctor.Path)
	go func() {
		defer close(asked)
		for in := json.NewDecoder(c.InOrStdin()); ; {
			var paths []doctor.Path
			if in.Decode(&paths) != nil {
				return // whoever asks is through, or gone
			}
			select {
			case asked <- paths:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case paths, more := <-asked:
			if !more {
				return nil
			}
			doctor.Probe(ctx, paths)
			if err := json.NewEncoder(c.OutOrStdout()).Encode(paths); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// found is what one rank of a job has to say.
type found struct {
	Host *doctor.Host `json:"host,omitempty"`
	Name string       `json:"name"` // of the machine
	Err  string       `json:"err,omitempty"`
}

// askJob gathers what the ranks of a job have found, one of each host, and has them probe the paths between.
func (o *doctorOptions) askJob(c *cobra.Command, mine found) (hosts []doctor.Host, unasked []string, err error) {
	note := func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "# "+format+"\n", a...) }
	g, err := o.meet(c.Context(), 2*o.timeout+slowSSH, note) // a machine that cannot be read says so when its time is over
	if err != nil {
		return nil, nil, err
	}
	var packed bytes.Buffer // reports are long, and alike
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(mine), z.Close()); err != nil {
		return nil, nil, err
	}
	all, err := g.Gather("reports", packed.Bytes())
	if err != nil {
		g.Abort(err)
		return nil, nil, err
	}
	known := map[string]bool{}
	var by []int // the first rank of each host: it speaks for that
	for rank, part := range all {
		f, err := unpack(part)
		if err != nil {
			err = fmt.Errorf("rank %d's report: %w", rank, err)
			g.Abort(err)
			return nil, nil, err
		}
		switch {
		case known[f.Name]:
		case f.Host != nil:
			hosts, by = append(hosts, *f.Host), append(by, rank)
		default:
			unasked = append(unasked, f.Name+": "+f.Err)
		}
		known[f.Name] = true
	}
	var paths []doctor.Path
	if me := slices.Index(by, o.rank); me >= 0 {
		paths = doctor.Paths(hosts)[me]
		doctor.Probe(c.Context(), paths)
	}
	part, err := json.Marshal(paths)
	if err == nil {
		all, err = g.Gather("paths", part) // and this host answers until all are through
	}
	if err != nil {
		g.Abort(err)
		return nil, nil, err
	}
	g.Leave()
	for i, rank := range by {
		hosts[i].Answers = nil
		if err := json.Unmarshal(all[rank], &hosts[i].Paths); err != nil {
			return nil, nil, fmt.Errorf("rank %d's paths: %w (do all ranks run the same weft?)", rank, err)
		}
	}
	return hosts, unasked, nil
}

func unpack(part []byte) (f found, err error) {
	z, err := gzip.NewReader(bytes.NewReader(part))
	if err != nil {
		return f, err
	}
	if err := json.NewDecoder(io.LimitReader(z, mostReport)).Decode(&f); err != nil {
		return f, fmt.Errorf("%w (do all ranks run the same weft?)", err)
	}
	return f, nil
}

// mostReport of a host, in bytes.
const mostReport = 64 << 20
