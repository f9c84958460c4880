package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/launch"
	"weft/internal/perf"
)

// sizesOf are those that flags name.
func (o *perfFlags) sizesOf() ([]int64, error) {
	if o.Test == perf.Connects {
		return nil, nil
	}
	text := "8,64,512,4K,32K,256K,1M,4M,16M,64M"
	given := 0
	for _, g := range []bool{o.size != "", o.sizes != "", o.all} {
		if g {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, errors.New("--size, --sizes and --all choose the sizes: give one")
	case o.size != "":
		text = o.size
	case o.sizes != "":
		text = o.sizes
	case o.all:
		var all []int64
		for n := int64(8); n <= 64<<20; n *= 2 {
			all = append(all, n)
		}
		return all, nil
	}
	var all []int64
	for _, word := range strings.Split(text, ",") {
		n, err := parseBytes(word)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// check finds what does not fit together, and fills in what was left out.
func (o *perfFlags) check(c *cobra.Command, args []string) (err error) {
	if o.Sizes, err = o.sizesOf(); err != nil {
		return err
	}
	switch {
	case o.Rounds < 0 || o.Iters < 0 || o.Limit <= 0 || o.Test != perf.Connects && o.Duration <= 0:
		return errors.New("rounds, messages and times are positive")
	case o.Test != perf.Connects && o.Test != perf.Latency && (o.Window < 1 || o.Window > maxPerfWindow):
		return fmt.Errorf("--tx-depth %d: want 1 to %d", o.Window, maxPerfWindow)
	case o.Test == perf.Connects && o.Conns < 1:
		return fmt.Errorf("--conns %d: want at least 1", o.Conns)
	case o.json && o.csv:
		return errors.New("--json and --csv both choose the form: give one")
	case o.tolerance <= 0 || o.tolerance >= 1:
		return fmt.Errorf("--tolerance %g: want a share between 0 and 1", o.tolerance)
	case o.Matrix && o.compare != "":
		return errors.New("--compare is for the other tests")
	}
	if o.Rounds == 0 {
		o.Rounds = 3
		if o.vs != "" {
			o.Rounds = 9
		}
	}
	o.Check = !o.noCheck
	if err := o.findEnds(c, args); err != nil {
		return err
	}
	if o.level, err = logLevel(os.Getenv("NCCL_DEBUG"), o.verbose); err != nil {
		return err
	}
	if len(o.hosts.list) > 0 {
		return nil // libraries and programs are the hosts'
	}
	if o.plugin, err = pluginAt("--plugin", o.plugin); err != nil {
		return err
	}
	o.Plugins = []string{o.plugin}
	if o.vs != "" {
		if o.vs, err = pluginAt("--vs", o.vs); err != nil {
			return err
		}
		o.Plugins = append(o.Plugins, o.vs)
	}
	if o.Host == "" {
		o.Host, err = ownHost()
	}
	return err
}

// maxPerfWindow is the host's.
const maxPerfWindow = 256

// findEnds decides which ranks run here.
func (o *perfFlags) findEnds(c *cobra.Command, args []string) error {
	to := ""
	if len(args) > 0 {
		to = args[0]
	}
	if len(o.hosts.list) > 0 {
		if !o.Matrix && len(o.hosts.list)%2 != 0 {
			return fmt.Errorf("%d hosts: half of them send to the other half, so there are 2, 4, 6 ... of them", len(o.hosts.list))
		}
		return nil
	}
	if to == "" && !o.serve {
		if err := o.find(c.Flags().Changed); err != nil {
			return err
		}
		if o.nranks < 2 || o.nranks > 4096 {
			return fmt.Errorf("--nranks %d: want 2 to 4096", o.nranks)
		}
		if !o.Matrix && o.nranks%2 != 0 {
			return fmt.Errorf("%d ranks: half of them send to the other half, so there are 2, 4, 6 ... of them", o.nranks)
		}
		return nil
	}
	for _, name := range []string{"compare", "json", "csv", "report_gbits"} {
		if !o.serve && c.Flags().Changed(name) {
			return fmt.Errorf("--%s is for the process that waits, with --serve: it tells", name)
		}
	}
	for _, name := range []string{"rank", "nranks", "join", "local"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s is for ranks of a job, and --serve and HOST are for two processes: give one", name)
		}
	}
	if _, _, err := net.SplitHostPort(to); err != nil {
		to = net.JoinHostPort(strings.Trim(to, "[]"), perfPort)
	}
	o.rank, o.nranks = 1, 2
	if o.serve {
		o.rank = 0
	}
	if o.token == "" {
		o.token = os.Getenv(runToken)
	}
	o.join = to
	o.place = &launch.Place{Rank: o.rank, Size: 2, Addrs: []string{to}}
	return nil
}
