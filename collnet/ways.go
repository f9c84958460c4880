package collnet

import "weft/collnet/schedule"

const (
	mostWays  = 64 // operations of so many shapes are remembered: NCCL cuts a collective into pieces of one size, and repeats it
	mostPlans = 16 // of so many chunks the plans too
)

// way is how an operation is done: what depends on its shape only, and on what ranks know alike.
type way struct {
	algorithm schedule.Algorithm
	order     []int
	chunks    []schedule.Chunk
	plans     []*schedule.Plan // of the chunks, where they are kept; nil: not made yet
}

// way is that of an operation's shape. pass is held.
func (c *Comm) way(what schedule.Op) *way {
	if w := c.ways[what]; w != nil {
		return w
	}
	if c.ways == nil || len(c.ways) == mostWays {
		c.ways = map[schedule.Op]*way{}
	}
	w := &way{}
	w.algorithm, w.order = c.choices.Pick(what)
	if what.Kind == schedule.AllReduce || what.Window.Len > 0 {
		w.chunks = schedule.Chunks(what, w.algorithm, int64(c.ctx.Chunk))
	}
	if len(w.chunks) <= mostPlans {
		w.plans = make([]*schedule.Plan, len(w.chunks))
	}
	c.ways[what] = w
	return w
}

// plan is the rank's for the i-th chunk.
func (w *way) plan(what schedule.Op, i int) (*schedule.Plan, error) {
	if w.plans != nil && w.plans[i] != nil {
		return w.plans[i], nil
	}
	p, err := schedule.Make(what, w.algorithm, w.order, w.chunks[i])
	if err == nil && w.plans != nil {
		w.plans[i] = &p
	}
	return &p, err
}
