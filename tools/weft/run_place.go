package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"weft/internal/launch"
	"weft/internal/ranks"
)

// findPlace decides between all ranks here and one of a job's: flags first, then what a launcher has set.
func (o *runOptions) findPlace(given func(flag string) bool) error {
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

func (o *runOptions) placeOfFlags() error {
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
func (o *runOptions) meet(ctx context.Context, out *report) (ranks.Group, error) {
	l, addrs, err := o.place.Meet(ctx, o.timeout)
	if err != nil {
		return nil, err
	}
	by := "--join"
	if o.join == "" {
		by = "MASTER_ADDR and MASTER_PORT, else " + o.place.Launcher + ","
	}
	return ranks.Join(ctx, ranks.JoinOptions{Addrs: addrs, Listener: l, By: by, Rank: o.rank, Size: o.nranks, Token: o.token, Limit: o.timeout, Note: out.Note})
}
