package ranks

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"weft/internal/host"
)

// Options say what the ranks do; rank 0's count, but for what is local to a machine.
type Options struct {
	Host   string                         `json:"-"` // the weft-host program
	Plugin string                         `json:"-"` // the library, as dlopen takes it
	Device string                         `json:"-"` // name or number, or several joined by +; default the first
	Env    []string                       `json:"-"`
	Log    func(rank int, l host.LogLine) `json:"-"`

	Abi   int           `json:"abi"`   // the table
	Sizes []int64       `json:"sizes"` // bytes of each all-reduce, multiples of 4
	Iters int           `json:"iters"` // 0: as many as the size deserves
	Warm  int           `json:"warm"`
	Input string        `json:"input"` // file of rank 0 to broadcast
	Bytes int64         `json:"bytes"` // its size, filled in by rank 0
	Flush bool          `json:"flush"` // also receive groups of many sizes, each flushed
	Limit time.Duration `json:"limit"` // of each step
	Coll  *Collectives  `json:"coll"`  // instead of all that, but for sizes and counts

	Require string `json:"require"` // RequireRDMA, or empty
}

// Result is one all-reduce size, over all ranks.
type Result struct {
	Size  int64   `json:"size"`
	Count int64   `json:"count"`
	Iters int     `json:"iters"`
	Time  float64 `json:"time_us"` // mean of an iteration, mean over ranks
	Min   float64 `json:"min_us"`
	Max   float64 `json:"max_us"`
	AlgBW float64 `json:"algbw_gbs"`
	BusBW float64 `json:"busbw_gbs"`
	Wrong int64   `json:"wrong"`
	Where string  `json:"where,omitempty"` // the first wrong element
}

// Sink is told what happens; only rank 0's results are complete, so only it tells.
type Sink interface {
	Start(table, device string, nranks int)
	Busy(what string)
	Result(Result)
	Broadcast(FileCopy)
	Flushed(Flushes)
	Collective(CollResult)
	Links([]RingLink)
	Note(format string, a ...any) // of every rank: what the user should know
}

// rank is one rank at work.
type rank struct {
	o    Options
	g    Group
	sink Sink
	h    *host.Host
	n    *host.Net

	props      *host.Props
	send, recv host.Ptr
	base       host.Ptr
	smh, rmh   host.Ptr
	group      int
	doing      string // for messages
}

// killAfter is how long a rank's host may go on once another rank has failed.
const killAfter = 3 * time.Second

// The layout of the one buffer: in, out, then the pieces under way.
const piece = 256 << 10

// Run is one rank's part of a run over one table. The group fails when it does.
func Run(g Group, o Options, sink Sink) (err error) {
	r := &rank{o: o, g: g, sink: sink}
	defer func() {
		if err != nil {
			f := r.failure(err)
			g.Abort(f)
			err = f
		}
	}()
	if err := r.agree(); err != nil {
		return err
	}
	if r.h, err = host.Start(host.Options{Bin: o.Host, Name: fmt.Sprintf("rank %d's host", g.Rank()), Env: r.env(), Deadline: r.o.Limit + 10*time.Second, Log: r.log}); err != nil {
		return err
	}
	defer func() {
		if closing := r.h.Close(); err == nil {
			err = closing
		}
	}()
	stop := make(chan struct{})
	defer close(stop)
	go r.guard(stop)
	if r.o.Coll != nil {
		return r.collectives()
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{{"load", r.load}, {"connect", r.connect}, {"register", r.register}, {"flushed groups", r.flush}, {"all-reduce", r.reduce}, {"broadcast", r.broadcast}, {"links", r.links}, {"close", r.leave}} {
		r.busy(step.name)
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// guard ends the host soon after another rank has failed: its calls may never return.
func (r *rank) guard(stop chan struct{}) {
	select {
	case <-stop:
		return
	case <-r.g.Failed():
	}
	select {
	case <-stop:
	case <-time.After(killAfter):
		r.h.Kill()
	}
}

// busy says what is being done.
func (r *rank) busy(what string) {
	r.doing = what
	if r.g.Rank() == 0 {
		r.sink.Busy(what)
	}
}

func (r *rank) log(l host.LogLine) {
	if r.o.Log != nil {
		r.o.Log(r.g.Rank(), l)
	}
}

// agree takes rank 0's choice of table, sizes and file.
func (r *rank) agree() error {
	mine, err := json.Marshal(r.o)
	if err != nil {
		return err
	}
	all, err := r.g.Gather("options", mine)
	if err != nil {
		return err
	}
	given := r.o
	r.o.Sizes, r.o.Coll = nil, nil // ranks of one process share the list that they were given
	if err := json.Unmarshal(all[0], &r.o); err != nil {
		return fmt.Errorf("rank 0's options: %w (do all ranks run the same weft?)", err)
	}
	if !slices.Equal(given.Sizes, r.o.Sizes) || given.Iters != r.o.Iters || given.Flush != r.o.Flush || !reflect.DeepEqual(given.Coll, r.o.Coll) {
		r.sink.Note("rank %d was given other sizes, counts or collectives than rank 0; rank 0's are used (sizes %s)", r.g.Rank(), brief(r.o.Sizes))
	}
	return nil
}

// brief is a list of sizes as its ends.
func brief(sizes []int64) string {
	if len(sizes) > 3 {
		return fmt.Sprintf("%d, %d ... %d", sizes[0], sizes[1], sizes[len(sizes)-1])
	}
	return strings.Trim(fmt.Sprint(sizes), "[]")
}

// open loads the plugin, and has its net begin.
func (r *rank) open() (*host.Lib, error) {
	lib, err := r.h.Load(r.o.Plugin)
	if err != nil {
		return nil, err
	}
	if r.n, err = lib.BindNet(r.o.Abi); err != nil {
		return nil, err
	}
	return lib, r.n.Init()
}

func (r *rank) load() error {
	if _, err := r.open(); err != nil {
		return err
	}
	dev, err := r.device()
	if err != nil {
		return err
	}
	if r.props, err = r.n.Props(dev); err != nil {
		return err
	}
	r.group = 1
	if r.n.Grouped() {
		r.group = max(1, min(r.props.MaxRecvs, 4))
	}
	name := r.props.Name
	if name == "" { // v2 has no names
		name = fmt.Sprintf("%d (%s)", dev, r.props.PCIPath)
	}
	if r.g.Rank() == 0 {
		r.sink.Start(host.FamilyNet.Symbol(r.o.Abi), name, r.g.Size())
	}
	return r.ring(dev)
}

// ring listens, trades handles and connects: to the next rank, from the previous one.
// All ranks connect before any accepts when the table is one of those that may block.
func (r *rank) ring(dev int) error {
	handle, listen, err := r.n.Listen(dev)
	if err != nil {
		return err
	}
	text, err := r.h.Read(handle, int64(r.n.HandleSize()))
	if err != nil {
		return err
	}
	all, err := r.g.Gather("handles", text)
	if err != nil {
		return err
	}
	next, err := r.h.Alloc(128)
	if err != nil {
		return err
	}
	if err := r.h.Write(next, all[(r.g.Rank()+1)%r.g.Size()]); err != nil {
		return err
	}
	if r.send, r.recv, err = r.n.ConnectAccept(dev, next, listen, r.o.Limit); err != nil {
		return err
	}
	return r.n.CloseListen(listen)
}

func (r *rank) connect() error {
	_, err := r.g.Gather("connected", nil)
	return err
}

// largest is room for the largest message, in whole lines.
func (r *rank) largest() int64 {
	const line = 64
	room := int64(line)
	for _, s := range r.o.Sizes {
		room = max(room, (s+line-1)/line*line)
	}
	return room
}

func (r *rank) register() error {
	largest := r.largest()
	size := 2*largest + int64(4*r.group*piece)
	var err error
	if r.base, err = r.h.Alloc(size); err != nil {
		return err
	}
	if r.smh, err = r.n.RegMr(r.send, r.base, size); err != nil {
		return err
	}
	r.rmh, err = r.n.RegMr(r.recv, r.base, size)
	return err
}

// loop runs one of the host's loops on the ring.
func (r *rank) loop(cmd string, a host.Args) (*host.Reply, error) {
	a = append(host.Args{"send", r.send, "recv", r.recv, "smh", r.smh, "rmh", r.rmh, "rank", r.g.Rank(), "nranks", r.g.Size(), "limit", r.o.Limit}, a...)
	return r.h.CallIn(r.o.Limit+10*time.Second, r.n.Data, cmd, a)
}

// iters is how often a size is measured when nobody says.
func iters(asked int, size int64) int {
	if asked > 0 {
		return asked
	}
	return int(max(4, min(20, (64<<20)/max(size, 1))))
}

type share struct {
	Us, Min, Max float64
	Wrong, First int64
	Sum          string
}

// tell gives every rank's share of a result to every rank.
func (r *rank) tell(name string, s share) ([]share, error) {
	mine, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	all, err := r.g.Gather(name, mine)
	if err != nil {
		return nil, err
	}
	out := make([]share, len(all))
	for i := range all {
		if err := json.Unmarshal(all[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *rank) reduce() error {
	var largest int64 = 64
	for _, s := range r.o.Sizes {
		largest = max(largest, (s+63)/64*64)
	}
	for i, size := range r.o.Sizes {
		n := iters(r.o.Iters, size)
		r.busy(fmt.Sprintf("all-reduce of %d bytes", size))
		rep, err := r.loop("ring.allreduce", host.Args{"in", r.base, "out", r.base + host.Ptr(largest), "scratch", r.base + host.Ptr(2*largest),
			"count", size / 4, "iters", n, "warm", r.o.Warm, "piece", piece, "group", r.group, "seed", i + 1})
		if err != nil {
			return err
		}
		all, err := r.tell(fmt.Sprintf("result %d", i), share{rep.Float("us"), rep.Float("min"), rep.Float("max"), rep.Int("wrong"), rep.Int("first"), ""})
		if err != nil {
			return err
		}
		if r.g.Rank() == 0 {
			r.sink.Result(combine(size, n, all))
		}
	}
	return nil
}

func combine(size int64, iters int, all []share) Result {
	res := Result{Size: size, Count: size / 4, Iters: iters, Min: all[0].Min}
	for k, s := range all {
		res.Time += s.Us / float64(iters) / float64(len(all))
		res.Min, res.Max = min(res.Min, s.Min), max(res.Max, s.Max)
		if s.Wrong > 0 && res.Wrong == 0 {
			res.Where = fmt.Sprintf("rank %d, element %d", k, s.First)
		}
		res.Wrong += s.Wrong
	}
	if res.Time > 0 {
		res.AlgBW = float64(size) / res.Time / 1e3
		res.BusBW = res.AlgBW * 2 * float64(len(all)-1) / float64(len(all))
	}
	return res
}

// leave closes as NCCL does: registrations, comms, context; the library stays. All ranks are through with their data.
func (r *rank) leave() error {
	for _, step := range []func() error{
		func() error { return r.n.DeregMr(r.send, r.smh) },
		func() error { return r.n.DeregMr(r.recv, r.rmh) },
		func() error { return r.n.CloseSend(r.send) },
		func() error { return r.n.CloseRecv(r.recv) },
		r.n.Finalize,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	_, err := r.g.Gather("closed", nil)
	return err
}
