package collnet

import "weft/collnet/schedule"

const (
	mostWays  = 64      // are remembered: NCCL cuts a collective into pieces of one size, and repeats it
	mostPlans = 16      // for operations of no more chunks: for larger ones a way takes little of their time
	mostParts = 1 << 14 // from then on no plan is kept; about 2 MiB. Between 1,024 ranks one plan has up to 8,000
)

// way is how an operation is done: what depends on its shape only, and on what ranks know alike.
type way struct {
	algorithm schedule.Algorithm
	order     []int
	chunks    []schedule.Chunk
	plans     []*schedule.Plan // of the chunks, nil where they are not kept; none at all of a way that is not remembered
	parts     *int             // of all plans that are kept
}

// way is that of an operation's shape. pass is held.
func (c *Comm) way(what schedule.Op) *way {
	if w := c.ways[what]; w != nil {
		return w
	}
	w := &way{}
	w.algorithm, w.order = c.choices.Pick(what)
	if what.Kind == schedule.AllReduce || what.Window.Len > 0 {
		w.chunks = schedule.Chunks(what, w.algorithm, int64(c.ctx.Chunk))
	}
	if len(w.chunks) > mostPlans {
		return w
	}
	if c.ways == nil || len(c.ways) == mostWays || *c.parts >= mostParts {
		c.ways, c.parts = map[schedule.Op]*way{}, new(int)
	}
	w.plans, w.parts = make([]*schedule.Plan, len(w.chunks)), c.parts
	c.ways[what] = w
	return w
}

// plan is the rank's for the i-th chunk.
func (w *way) plan(what schedule.Op, i int) (*schedule.Plan, error) {
	if w.plans != nil && w.plans[i] != nil {
		return w.plans[i], nil
	}
	p, err := schedule.Make(what, w.algorithm, w.order, w.chunks[i])
	if err != nil {
		return nil, err
	}
	if w.plans != nil && *w.parts < mostParts {
		w.plans[i] = &p
		*w.parts += p.Parts()
	}
	return &p, nil
}
