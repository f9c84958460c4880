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
	start := strings.Fields(o.hosts.ssh)
	if len(start) == 0 {
		return nil, nil, errors.New("--ssh: want a command, such as ssh")
	}
	program := o.hosts.program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, nil, err
		}
	}
	line := fmt.Sprintf("exec %s doctor --local --json --look=%v --timeout=%v", quoted(program), o.between, o.timeout)
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
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	failed := cmd.Run()
	var r doctor.Report
	if err := json.Unmarshal(out.Bytes(), &r); err == nil && r.Schema == doctor.Schema && len(r.Hosts) == 1 {
		return &r.Hosts[0], nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(errOut.String()), "\n")
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

// askJob gathers what the ranks of a job have found, one of each host; only rank 0 gets it.
func (o *doctorOptions) askJob(c *cobra.Command, mine doctor.Host) (hosts []doctor.Host, err error) {
	note := func(format string, a ...any) { fmt.Fprintf(c.ErrOrStderr(), "# "+format+"\n", a...) }
	g, err := o.meet(c.Context(), o.timeout+slowSSH, note)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer // reports are long, and alike
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(mine), z.Close()); err != nil {
		return nil, err
	}
	all, err := g.Gather("reports", packed.Bytes())
	if err != nil {
		g.Abort(err)
		return nil, err
	}
	g.Leave()
	if o.rank > 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	for rank, part := range all {
		z, err := gzip.NewReader(bytes.NewReader(part))
		if err != nil {
			return nil, fmt.Errorf("rank %d's report: %w", rank, err)
		}
		var h doctor.Host
		if err := json.NewDecoder(io.LimitReader(z, mostReport)).Decode(&h); err != nil {
			return nil, fmt.Errorf("rank %d's report: %w (do all ranks run the same weft?)", rank, err)
		}
		if !seen[h.Name] { // several ranks of one host
			seen[h.Name] = true
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// mostReport of a host, in bytes.
const mostReport = 64 << 20
