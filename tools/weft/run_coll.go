package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weft/internal/host"
	"weft/internal/ranks"
)

// collFlags are those of --coll, as they were given.
type collFlags struct {
	kind, types, ops, piece string
	root, window, checks    int
}

// collectives are what the flags come to; nil without --coll.
func (c *collFlags) collectives(given func(flag string) bool, nranks int) (*ranks.Collectives, error) {
	if c.kind == "" {
		for _, name := range []string{"type", "op", "root", "piece", "window"} {
			if given(name) {
				return nil, fmt.Errorf("--%s is for --coll: without it float32 is summed by a ring", name)
			}
		}
		return nil, nil
	}
	for _, name := range []string{"input", "flush", "require"} {
		if given(name) {
			return nil, fmt.Errorf("--%s is for the ring, and --coll has none (WEFT_REQUIRE=rdma works with both)", name)
		}
	}
	o := &ranks.Collectives{Kind: ranks.CollKind(strings.ReplaceAll(strings.ToLower(c.kind), "-", "")), Root: c.root, Window: c.window, Checks: c.checks}
	if !slices.Contains(ranks.CollKinds, o.Kind) {
		return nil, fmt.Errorf("--coll %s: want %s", c.kind, words(ranks.CollKinds))
	}
	for _, name := range chosen(c.types, typeNames()) {
		t := slices.Index(typeNames(), strings.ToLower(name))
		if t < 0 {
			return nil, fmt.Errorf("--type %s: want all or some of %s", name, words(typeNames()))
		}
		o.Types = append(o.Types, host.DataType(t))
	}
	for _, name := range chosen(c.ops, host.RedOps[:]) {
		op := slices.Index(host.RedOps[:], strings.ToLower(name))
		if op < 0 {
			return nil, fmt.Errorf("--op %s: want all or some of %s; NCCL has an average summed by the plugin", name, words(host.RedOps[:]))
		}
		o.Ops = append(o.Ops, host.RedOp(op))
	}
	if o.Root < 0 || o.Root >= nranks {
		return nil, fmt.Errorf("--root %d: want 0 to %d", o.Root, nranks-1)
	}
	if o.Window < 1 || o.Window > maxWindow {
		return nil, fmt.Errorf("--window %d: want 1 to %d", o.Window, maxWindow)
	}
	if c.piece != "" {
		var err error
		if o.Piece, err = parseSize(c.piece); err != nil {
			return nil, fmt.Errorf("--piece: %w", err)
		}
	}
	return o, nil
}

// maxWindow is NCCL_NET_MAX_REQUESTS.
const maxWindow = 32

// chosen are the names of a list, or all.
func chosen(list string, all []string) []string {
	if list == "all" {
		return all
	}
	return strings.Split(list, ",")
}

func typeNames() []string {
	var names []string
	for _, t := range host.DataTypes {
		names = append(names, t.Name)
	}
	return names
}

func words[T ~string](list []T) string {
	var b strings.Builder
	for i, w := range list {
		switch {
		case i > 0 && i == len(list)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// family is that of the tables that a run goes through.
func (o *runOptions) family() host.Family {
	if o.coll != nil {
		return host.FamilyColl
	}
	return host.FamilyNet
}

// errNoTable is a library without a table of the family.
func (o *runOptions) errNoTable() error {
	if o.coll != nil {
		return errors.New(o.plugin + " exports no ncclCollNetPlugin_vN that weft knows, so it performs no collectives")
	}
	return errors.New(o.plugin + " exports no ncclNetPlugin_vN that weft knows")
}

// collHead writes nccl-tests' columns, once.
func (r *report) collHead() {
	if len(r.tables) > 1 {
		return
	}
	r.print("# %s\n", r.o.coll.Kind)
	r.print("#%11s  %12s  %8s  %6s  %5s  %42s  %42s\n", "", "", "", "", "", "out-of-place", "in-place")
	r.print("#%11s  %12s  %8s  %6s  %5s", "size", "count", "type", "redop", "root")
	for range 2 {
		r.print("  %12s  %8s  %8s  %8s", "time", "algbw", "busbw", "#wrong")
	}
	units := fmt.Sprintf("%12s  %8s  %8s", "(us)", "(GB/s)", "(GB/s)")
	r.print("\n#%11s  %12s  %8s  %6s  %5s  %s  %8s  %s\n", "(B)", "(elements)", "", "", "", units, "", units)
}

// Collective prints one size.
func (r *report) Collective(res ranks.CollResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[len(r.tables)-1]
	t.Collectives = append(t.Collectives, res)
	r.print("%12d  %12d  %8s  %6s  %5d", res.Size, res.Count, res.Type, res.RedOp, res.Root)
	for _, p := range []ranks.Placed{res.Out, res.In} {
		wrong := fmt.Sprint(p.Wrong)
		if r.o.coll.Checks == 0 {
			wrong = "N/A"
		}
		r.print("  %12.2f  %8.2f  %8.2f  %8s", p.Time, p.AlgBW, p.BusBW, wrong)
	}
	r.print("\n")
	for i, p := range []ranks.Placed{res.Out, res.In} {
		if p.Wrong > 0 {
			r.print("# wrong, %s: the first at %s\n", []string{"out of place", "in place"}[i], p.Where)
		}
	}
}

// collectives counts those of a table, and those that went wrong.
func (t *table) collectives() (all, wrong int) {
	for _, res := range t.Collectives {
		for _, p := range []ranks.Placed{res.Out, res.In} {
			all++
			if p.Wrong > 0 {
				wrong++
			}
		}
	}
	return all, wrong
}
