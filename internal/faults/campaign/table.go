package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// table is what came of all faults.
type table struct {
	mu   sync.Mutex
	rows []outcome // protected by mu

	lenient bool
}

func (t *table) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, o)
}

// row counts the faults of one kind and place.
type row struct {
	faults, detected, named int
	times, names            []time.Duration
}

func (r *row) add(o *outcome, lenient bool) {
	r.faults++
	if o.detected > 0 && o.detected <= detectedWithin {
		r.detected++
	}
	if o.right(lenient) {
		r.named++
	}
	if o.detected > 0 {
		r.times = append(r.times, o.detected)
	}
	if o.named > 0 {
		r.names = append(r.names, o.named)
	}
}

func (r *row) String() string {
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s", r.faults, r.detected, r.named, spread(r.times), spread(r.names))
}

// spread is the median and the worst.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f, %.1f", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}

func (t *table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	type key struct{ kind, program, network, by string }
	rows, total := map[key]*row{}, &row{}
	for i := range t.rows {
		o := &t.rows[i]
		k := key{o.fault.kind.name, o.fault.program, o.fault.network, o.by}
		if rows[k] == nil {
			rows[k] = &row{}
		}
		rows[k].add(o, t.lenient)
		total.add(o, t.lenient)
	}
	var keys []key
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(b.program, a.program), cmp.Compare(a.network, b.network))
	})
	var text strings.Builder
	tab := tabwriter.NewWriter(&text, 2, 8, 2, ' ', 0)
	fmt.Fprintf(tab, "fault\ton\tnamed by\tdone\tdetected in %v\tright in %v\tdetected after, s\tnamed after, s (median, worst)\n", detectedWithin, namedWithin)
	for _, k := range keys {
		fmt.Fprintf(tab, "%s\t%s, %s\t%s\t%v\n", k.kind, k.program, k.network, k.by, rows[k])
	}
	fmt.Fprintf(tab, "all\t\t\t%v\n", total)
	tab.Flush()
	return text.String()
}

// leastRight is the part of all faults that must be named right.
const leastRight = 0.95

func (t *table) verdict() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := row{}
	for i := range t.rows {
		total.add(&t.rows[i], t.lenient)
	}
	if float64(total.named) < leastRight*float64(total.faults) {
		return fmt.Errorf("%d of %d faults were named right, fewer than %.0f %%", total.named, total.faults, 100*leastRight)
	}
	return nil
}
