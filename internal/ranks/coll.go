package ranks

import (
	"encoding/json"
	"fmt"
	"slices"

	"weft/internal/host"
)

// Collectives are what ranks have a plugin's collNet do, instead of a ring over its net.
type Collectives struct {
	Kind   CollKind        `json:"kind"`
	Types  []host.DataType `json:"types"`
	Ops    []host.RedOp    `json:"ops"` // of those that reduce
	Root   int             `json:"root"`
	Piece  int64           `json:"piece"`  // bytes of an operation at most; 0: as many as the plugin takes
	Window int             `json:"window"` // operations under way
	Checks int             `json:"checks"` // checked collectives of each size, after those that are timed
}

// CollKind is a collective.
type CollKind string

// The collectives. A broadcast is an all-gather of the root's part alone: the tables have no other.
const (
	AllReduce     CollKind = "allreduce"
	AllGather     CollKind = "allgather"
	ReduceScatter CollKind = "reducescatter"
	Broadcast     CollKind = "broadcast"
)

// CollKinds are all of them.
var CollKinds = []CollKind{AllReduce, AllGather, ReduceScatter, Broadcast}

// Reduces tells whether an operation combines what the ranks have.
func (k CollKind) Reduces() bool { return k == AllReduce || k == ReduceScatter }

// shares tells whether a buffer of the collective is made of one part for each rank.
func (k CollKind) shares() bool { return k == AllGather || k == ReduceScatter }

// busFactor is what nccl-tests multiplies a collective's bandwidth with, to have that of the links.
func (k CollKind) busFactor(ranks int) float64 {
	n := float64(ranks)
	switch k {
	case AllReduce:
		return 2 * (n - 1) / n
	case Broadcast:
		return 1
	}
	return (n - 1) / n
}

// CollResult is one size of one collective, over all ranks.
type CollResult struct {
	Size  int64  `json:"size"`  // bytes of the larger buffer
	Count int64  `json:"count"` // elements, of one rank's part where there are parts
	Type  string `json:"type"`
	RedOp string `json:"redop"` // none where nothing is reduced
	Root  int    `json:"root"`  // -1 where there is none
	Iters int    `json:"iters"`
	Out   Placed `json:"out_of_place"`
	In    Placed `json:"in_place"`
}

// Placed is a collective whose result goes elsewhere, or over its input.
type Placed struct {
	Time  float64 `json:"time_us"` // mean of an iteration, mean over ranks
	Min   float64 `json:"min_us"`
	Max   float64 `json:"max_us"`
	AlgBW float64 `json:"algbw_gbs"`
	BusBW float64 `json:"busbw_gbs"`
	Wrong int64   `json:"wrong"`
	Where string  `json:"where,omitempty"` // the first wrong element
	ULP   float64 `json:"ulp"`             // the largest distance from the exact result, in units of its last place
	Nulls int64   `json:"nulls"`           // calls that the plugin took later
}

// collRank is a rank at work on collectives.
type collRank struct {
	*rank
	c          *host.Coll
	comm, mh   host.Ptr
	base       host.Ptr // two buffers of `room` bytes each, then a flag
	room       int64
	serial     int // of results
	collective *Collectives
}

// flagRoom is what coll.run wants for its barrier.
const flagRoom = 64

func (r *rank) collectives() error {
	c := &collRank{rank: r, collective: r.o.Coll}
	for _, step := range []struct {
		name string
		do   func() error
	}{{"load", c.load}, {"register", c.register}, {string(r.o.Coll.Kind), c.all}, {"close", c.leave}} {
		r.busy(step.name)
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// load does what NCCL does: net's init first, then collNet's.
func (c *collRank) load() error {
	lib, err := c.open()
	if err != nil {
		return err
	}
	if c.c, err = lib.BindColl(c.o.Abi); err != nil {
		return err
	}
	if err := c.c.Init(); err != nil {
		return err
	}
	symbol := host.FamilyColl.Symbol(c.o.Abi)
	if c.collective.Kind != AllReduce && !c.c.Gathers() {
		return fmt.Errorf("%s has no iallgather and no ireducescatter, so no %s: they came with v8", symbol, c.collective.Kind)
	}
	dev, err := c.find(symbol)
	if err != nil {
		return err
	}
	if c.props, err = c.c.Props(dev); err != nil {
		return err
	}
	if c.g.Rank() == 0 {
		c.sink.Start(symbol, c.props.Name, c.g.Size())
	}
	return c.group(dev)
}

func (c *collRank) find(symbol string) (int, error) {
	n, err := c.c.Devices()
	if err != nil {
		return 0, err
	}
	if n == 0 {
		remedy := ""
		if c.c.Name == "weft" {
			remedy = "; set WEFT_COLLNET=1, by which it performs them in software"
		}
		return 0, fmt.Errorf("%s of %s offers no device, so no collectives%s", symbol, c.c.Name, remedy)
	}
	var names []string
	for d := range n {
		p, err := c.c.Props(d)
		if err != nil {
			return 0, err
		}
		names = append(names, p.Name)
	}
	return PickDevice(c.o.Device, names)
}

// group listens, trades handles and connects all ranks; connect blocks until all have called it.
func (c *collRank) group(dev int) error {
	handle, listen, err := c.c.Listen(dev)
	if err != nil {
		return err
	}
	all, err := c.g.Gather("handles", handle)
	if err != nil {
		return err
	}
	c.busy("connect")
	if c.comm, err = c.c.Connect(all, c.g.Rank(), listen, c.o.Limit); err != nil {
		return err
	}
	return c.c.CloseListen(listen)
}

func (c *collRank) register() error {
	c.room = c.largest()
	size := 2*c.room + flagRoom
	var err error
	if c.base, err = c.h.Alloc(size); err != nil {
		return err
	}
	c.mh, err = c.c.RegMr(c.comm, c.base, size)
	return err
}

// all goes through types, operations and sizes, in nccl-tests' order.
func (c *collRank) all() error {
	for _, t := range c.collective.Types {
		ops := []host.RedOp{host.Sum}
		if c.collective.Kind.Reduces() {
			ops = c.collective.Ops
		}
		for _, op := range ops {
			if yes, err := c.supported(t, op); err != nil {
				return err
			} else if !yes {
				continue
			}
			for _, size := range c.o.Sizes {
				if err := c.size(size, t, op); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// supported asks the plugin. One combination that was asked for and is not to be had is an error; of several it is left out.
func (c *collRank) supported(t host.DataType, op host.RedOp) (bool, error) {
	if !c.collective.Kind.Reduces() {
		return true, nil
	}
	yes, err := c.c.ReduceSupport(t, op)
	if err != nil || yes {
		return yes, err
	}
	text := fmt.Sprintf("%s does not reduce %v by %v (reduceSupport)", c.c.Name, t, op)
	if len(c.collective.Types)*len(c.collective.Ops) == 1 {
		return false, fmt.Errorf("%s", text)
	}
	if c.g.Rank() == 0 {
		c.sink.Note("%s: left out", text)
	}
	return false, nil
}

func (c *collRank) size(size int64, t host.DataType, op host.RedOp) error {
	kind, n := c.collective.Kind, int64(c.g.Size())
	count := size / t.Size()
	if kind.shares() {
		count /= n
	}
	c.busy(fmt.Sprintf("%s of %d bytes of %v", kind, size, t))
	res := CollResult{Count: count, Size: count * t.Size(), Type: t.String(), RedOp: "none", Root: -1, Iters: iters(c.o.Iters, size)}
	if kind.shares() {
		res.Size *= n
	}
	if kind.Reduces() {
		res.RedOp = op.String()
	}
	if kind == Broadcast {
		res.Root = c.collective.Root
	}
	part := host.Ptr(int64(c.g.Rank()) * count * t.Size())
	out, in := [2]host.Ptr{c.base, c.base + host.Ptr(c.room)}, [2]host.Ptr{c.base, c.base}
	switch kind {
	case AllGather:
		in[0] += part
	case ReduceScatter:
		in[1] += part
	}
	var err error
	if res.Out, err = c.placed(&res, out, t, op); err != nil {
		return err
	}
	if res.In, err = c.placed(&res, in, t, op); err != nil {
		return err
	}
	if c.g.Rank() == 0 {
		c.sink.Collective(res)
	}
	return nil
}

type collShare struct {
	Us, Min, Max, ULP   float64
	Wrong, First, Nulls int64
	Hash                string
}

// placed runs one collective from and to the two buffers.
func (c *collRank) placed(res *CollResult, buffers [2]host.Ptr, t host.DataType, op host.RedOp) (Placed, error) {
	piece := c.collective.Piece
	if most := c.most(); piece == 0 || piece > most {
		piece = most
	}
	c.serial++
	rep, err := c.h.CallIn(c.o.Limit, c.c.Data, "coll.run", host.Args{"kind", string(c.collective.Kind), "comm", c.comm, "send", buffers[0], "recv", buffers[1],
		"smh", c.mh, "rmh", c.mh, "flag", c.base + host.Ptr(2*c.room), "type", int(t), "op", int(op), "root", c.collective.Root, "rank", c.g.Rank(), "nranks", c.g.Size(),
		"count", res.Count, "iters", res.Iters, "warm", c.o.Warm, "checks", c.collective.Checks, "seed", c.serial, "piece", piece, "window", c.collective.Window, "limit", c.o.Limit})
	if err != nil {
		return Placed{}, err
	}
	mine, err := json.Marshal(collShare{rep.Float("us"), rep.Float("min"), rep.Float("max"), rep.Float("ulp"), rep.Int("wrong"), rep.Int("first"), rep.Int("nulls"), rep.Str("hash")})
	if err != nil {
		return Placed{}, err
	}
	parts, err := c.g.Gather(fmt.Sprintf("collective %d", c.serial), mine)
	if err != nil {
		return Placed{}, err
	}
	all := make([]collShare, len(parts))
	for i, p := range parts {
		if err := json.Unmarshal(p, &all[i]); err != nil {
			return Placed{}, err
		}
	}
	return c.combined(res, all), nil
}

// most is how many bytes one operation may have. Tables before v9 do not say, and count in ints: NCCL's own limit then.
func (c *collRank) most() int64 {
	const old = 1 << 29
	if c.props.MaxCollBytes > 0 {
		return int64(c.props.MaxCollBytes)
	}
	return old
}

func (c *collRank) combined(res *CollResult, all []collShare) Placed {
	p := Placed{Min: all[0].Min}
	for k, s := range all {
		p.Time += s.Us / float64(res.Iters) / float64(len(all))
		p.Min, p.Max = min(p.Min, s.Min), max(p.Max, s.Max)
		p.ULP, p.Nulls = max(p.ULP, s.ULP), p.Nulls+s.Nulls
		if s.Wrong > 0 && p.Wrong == 0 {
			p.Where = fmt.Sprintf("rank %d, element %d", k, s.First)
		}
		p.Wrong += s.Wrong
	}
	differs := slices.IndexFunc(all, func(s collShare) bool { return s.Hash != all[0].Hash })
	if p.Wrong == 0 && differs > 0 && c.collective.Kind != ReduceScatter {
		p.Wrong, p.Where = 1, fmt.Sprintf("some element: the results of ranks 0 and %d differ, though both are near enough", differs)
	}
	if p.Time > 0 {
		p.AlgBW = float64(res.Size) / p.Time / 1e3
		p.BusBW = p.AlgBW * c.collective.Kind.busFactor(len(all))
	}
	return p
}

// leave closes as NCCL does. All ranks are through with their data.
func (c *collRank) leave() error {
	for _, step := range []func() error{
		func() error { return c.c.DeregMr(c.comm, c.mh) },
		func() error { return c.c.CloseColl(c.comm) },
		c.c.Finalize,
		c.n.Finalize,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	_, err := c.g.Gather("closed", nil)
	return err
}
