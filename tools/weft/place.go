package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"

	"weft/internal/launch"
	"weft/internal/ranks"
)

// runToken has the secret that ranks share, where it stands in no command line.
const runToken = "WEFT_RUN_TOKEN"

// placing says which ranks run in this process: all of them, or one of a job's.
type placing struct {
	rank, nranks int
	join, token  string
	local        bool
	hosts        sshHosts
	place        *launch.Place // among the processes of a job; nil: every rank runs here
	alone        string        // the launcher that started this process and no other
}

func (o *placing) flags(f *pflag.FlagSet, nranks int) {
	f.IntVar(&o.nranks, "nranks", nranks, "number of ranks")
	f.IntVar(&o.rank, "rank", -1, "run only this rank (needs --join)")
	f.StringVar(&o.join, "join", "", "`host:port` of rank 0, where the ranks of several machines meet")
	f.StringVar(&o.token, "token", "", "secret that the ranks of a --join share (default: "+runToken+")")
	f.BoolVar(&o.local, "local", false, "run all ranks here, whatever a launcher has set")
	o.hosts.flags(f)
}

// find decides between all ranks here and one of a job's: flags first, then what a launcher has set.
func (o *placing) find(given func(flag string) bool) error {
	if o.token == "" {
		o.token = os.Getenv("WEFT_RUN_TOKEN")
	}
	if given("rank") || given("join") {
		return o.placeOfFlags()
	}
	if o.local {
		return nil
	}
	p, err := launch.Find(os.Getenv)
	if half := (*launch.Half)(nil); errors.As(err, &half) {
		return fmt.Errorf("%w; --local runs all ranks here", err)
	}
	if err != nil || p == nil {
		return err
	}
	if p.Size == 1 {
		o.alone = p.Launcher
		return nil
	}
	if given("nranks") && o.nranks != p.Size {
		return fmt.Errorf("--nranks %d, but %s has started %d ranks: leave it out", o.nranks, p.Launcher, p.Size)
	}
	o.place, o.rank, o.nranks = p, p.Rank, p.Size
	return nil
}

func (o *placing) placeOfFlags() error {
	if o.join == "" {
		return errors.New("--rank needs --join HOST:PORT, where the ranks meet")
	}
	if _, _, err := net.SplitHostPort(o.join); err != nil {
		return fmt.Errorf("--join %s: want host:port of rank 0", o.join)
	}
	if o.rank < 0 || o.rank >= o.nranks {
		return fmt.Errorf("--join needs --rank 0 to %d: this machine's number among --nranks %d", o.nranks-1, o.nranks)
	}
	o.place = &launch.Place{Rank: o.rank, Size: o.nranks, Addrs: []string{o.join}}
	return nil
}

// meet joins the ranks of the job.
func (o *placing) meet(ctx context.Context, limit time.Duration, note func(format string, a ...any)) (ranks.Group, error) {
	l, addrs, err := o.place.Meet(ctx, limit)
	if err != nil {
		return nil, err
	}
	by := "--join"
	if o.join == "" {
		by = "MASTER_ADDR and MASTER_PORT, else " + o.place.Launcher + ","
	}
	return ranks.Join(ctx, ranks.JoinOptions{Addrs: addrs, Listener: l, By: by, Rank: o.rank, Size: o.nranks, Token: o.token, Limit: limit, Note: note})
}
