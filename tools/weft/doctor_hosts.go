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
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/doctor"
)

// askHosts has weft doctor run on each host by ssh. Who does not answer is told with the reason.
func (o *doctorOptions) askHosts(c *cobra.Command) (hosts []doctor.Host, unasked []string, err error) {
	start, program, err := o.hosts.command()
	if err != nil {
		return nil, nil, err
	}
	line := fmt.Sprintf("exec %s doctor --leash --local --json --look=%v --timeout=%v", doctor.ShellQuote(program), o.between, o.timeout)
	found, why := make([]*doctor.Host, len(o.hosts.list)), make([]string, len(o.hosts.list))
	var wg sync.WaitGroup
	for i, host := range o.hosts.list {
		wg.Go(func() {
			h, err := o.askHost(c.Context(), append(append([]string{}, start...), host, line))
			if found[i] = h; err != nil {
				why[i] = fmt.Sprintf("%s: %v", host, err)
			}
		})
	}
	wg.Wait()
	for i := range found {
		if found[i] != nil {
			hosts = append(hosts, *found[i])
		} else {
			unasked = append(unasked, why[i])
		}
	}
	return hosts, unasked, nil
}

// slowSSH is what a host may take beyond its doctor's own limit.
const slowSSH = 15 * time.Second

func (o *doctorOptions) askHost(ctx context.Context, args []string) (*doctor.Host, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout+slowSSH, fmt.Errorf("no answer within %v", o.timeout+slowSSH))
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = bytes.NewReader(variables(os.Environ(), ""))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	failed := cmd.Run()
	var r doctor.Report
	if err := json.Unmarshal(out.Bytes(), &r); err == nil && r.Schema == doctor.Schema && len(r.Hosts) == 1 {
		return &r.Hosts[0], nil
	}
	said := strings.TrimSpace(errOut.String())
	said = said[strings.LastIndexByte(said, '\n')+1:] // behind a banner
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case said != "":
		return nil, errors.New(said)
	case failed != nil:
		return nil, failed
	}
	return nil, errors.New("its weft doctor does not answer in this one's form: is it of another version?")
}

// found is what one rank of a job has to say.
type found struct {
	Host *doctor.Host `json:"host,omitempty"`
	Name string       `json:"name"` // of the machine
	Err  string       `json:"err,omitempty"`
}

// askJob gathers what the ranks of a job have found, one of each host; only rank 0 gets it.
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
	g.Leave()
	if o.rank > 0 {
		return nil, nil, nil
	}
	seen := map[string]bool{}
	for rank, part := range all {
		z, err := gzip.NewReader(bytes.NewReader(part))
		if err != nil {
			return nil, nil, fmt.Errorf("rank %d's report: %w", rank, err)
		}
		var f found
		if err := json.NewDecoder(io.LimitReader(z, mostReport)).Decode(&f); err != nil {
			return nil, nil, fmt.Errorf("rank %d's report: %w (do all ranks run the same weft?)", rank, err)
		}
		switch {
		case seen[f.Name]: // several ranks of one host
		case f.Host != nil:
			hosts = append(hosts, *f.Host)
		default:
			unasked = append(unasked, f.Name+": "+f.Err)
		}
		seen[f.Name] = true
	}
	return hosts, unasked, nil
}

// mostReport of a host, in bytes.
const mostReport = 64 << 20
