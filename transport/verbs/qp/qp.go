package qp

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
)

const psnMask = 1<<24 - 1 // of a packet number

// Config is what a queue pair is made for.
type Config struct {
	SendCQ, RecvCQ       *CQ
	SendDepth, RecvDepth int        // requests outstanding; cut to what the device allows
	Inline               int        // payload that a request should carry itself; the device may give less or more
	Access               ibv.Access // what the peer may do through it; 0: RemoteWrite
	AnyOrder             bool       // its requests may arrive in any order; see port.Device.AnyOrder
	Cookie               uint64     // the transport's name for its user, in events
}

// QP is a reliable connection of one port. The C lane posts to it by its pointer.
type QP struct {
	SendDepth, RecvDepth int // as made
	Inline               int // as made
	Number               uint32
	Cookie               uint64

	dev    *port.Device
	card   *card.Card
	raw    ibv.Object
	access ibv.Access

	declined atomic.Bool // the peer's ECE

	life struct {
		sync.Mutex
		psn   uint32      // protected; first packet number that this side sends
		mtu   int         // protected; of the path, in bytes; 0: not connected
		state ibv.QPState // protected; what it was brought to last
	}
	use struct {
		sync.RWMutex      // read-locked by each call that names raw to the library
		closed       bool // protected
	}
}

// New makes a queue pair on a port and brings it to INIT.
func New(d *port.Device, pd *mr.PD, c Config) (*QP, error) {
	on := d.Card()
	if pd.Card() != on || c.SendCQ.card != on || c.RecvCQ.card != on {
		return nil, report.Errorf(report.Internal, "ibv_create_qp", "protection domain or completion queue of another device").On(d.Name)
	}
	if c.Access == 0 {
		c.Access = ibv.RemoteWrite
	}
	if on.Lib.Knobs.Int(knob.IBUseInline) == 0 {
		c.Inline = 0
	}
	want := ibv.QPCap{SendWR: depth(on, c.SendDepth), RecvWR: depth(on, c.RecvDepth), Inline: max(c.Inline, 0)}
	raw, number, got, errno := create(on, pd, &c, want)
	for on.Lib.Spares(errno) {
		raw, number, got, errno = create(on, pd, &c, want)
	}
	if errno != 0 {
		call := "ibv_create_qp"
		if c.AnyOrder {
			call = "mlx5dv_create_qp"
		}
		return nil, fail.Call(call, d.Name, errno, "%d send and %d receive requests, %d bytes inline, of at most %d requests and %d QPs",
			want.SendWR, want.RecvWR, want.Inline, on.Attr.MaxQPWR, on.Attr.MaxQP)
	}
	q := &QP{
		SendDepth: got.SendWR, RecvDepth: got.RecvWR, Inline: got.Inline, Number: number, Cookie: c.Cookie,
		dev: d, card: on, raw: raw, access: c.Access,
	}
	if c.Inline == 0 {
		q.Inline = 0 // a device may give room that nobody asked for
	}
	on.Own(raw, q)
	if err := q.toInit(); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// depth cuts a queue to what the device allows; weft posts piecewise, so a
// shorter queue is slower at most.
func depth(c *card.Card, want int) int {
	if c.Attr.MaxQPWR > 0 {
		want = min(want, c.Attr.MaxQPWR)
	}
	return max(want, 1)
}

// create asks for less inline room where the device refuses what was wanted:
// some round up, some return EINVAL instead.
func create(on *card.Card, pd *mr.PD, c *Config, want ibv.QPCap) (raw ibv.Object, number uint32, got ibv.QPCap, errno syscall.Errno) {
	last := want.Inline + 1
	for _, inline := range []int{want.Inline, 512, 256, 128, 64, 0} {
		if inline >= last {
			continue
		}
		try := want
		last, try.Inline = inline, inline
		var e syscall.Errno
		if c.AnyOrder {
			raw, number, got, e = on.Lib.MLX5CreateQP(on.Context(), pd.Object(), c.SendCQ.raw, c.RecvCQ.raw, try)
		} else {
			raw, number, got, e = on.Lib.CreateQP(pd.Object(), c.SendCQ.raw, c.RecvCQ.raw, try)
		}
		if e == 0 {
			return raw, number, got, 0
		}
		errno = e
		if e != syscall.EINVAL && e != syscall.ENOMEM {
			break
		}
	}
	return 0, 0, got, errno
}

// toInit also draws the packet number that this side starts with.
func (q *QP) toInit() error {
	psn := rand.Uint32() & psnMask
	key, how, err := q.dev.Partition()
	if err != nil {
		return err
	}
	attr := ibv.QPAttr{
		Mask: ibv.MaskState | ibv.MaskPKeyIndex | ibv.MaskPort | ibv.MaskAccess, State: ibv.StateInit,
		PKeyIndex: key, Port: q.dev.Number(), Access: q.access,
	}
	if errno := q.modify(&attr); errno != 0 {
		return q.stepFailed(&attr, errno, fmt.Sprintf("port %d, %s", attr.Port, how))
	}
	q.life.Lock()
	q.life.psn = psn
	q.life.Unlock()
	return nil
}

// Fence stops the queue pair: nothing that was posted on it takes effect any
// more once its completions, all of them flushed, are polled.
func (q *QP) Fence() error {
	attr := ibv.QPAttr{Mask: ibv.MaskState, State: ibv.StateErr}
	if errno := q.modify(&attr); errno != 0 {
		return q.stepFailed(&attr, errno, "")
	}
	return nil
}

// call runs f unless the queue pair is closed; Close waits for it.
func (q *QP) call(f func(lib *ibv.Calls) syscall.Errno) syscall.Errno {
	q.use.RLock()
	defer q.use.RUnlock()
	if q.use.closed {
		return syscall.ESHUTDOWN
	}
	return f(q.card.Lib.Calls)
}

// modify changes the state and remembers it.
func (q *QP) modify(attr *ibv.QPAttr) syscall.Errno {
	errno := q.call(func(lib *ibv.Calls) syscall.Errno { return lib.ModifyQP(q.raw, attr) })
	if errno == 0 {
		q.life.Lock()
		q.life.state = attr.State
		q.life.Unlock()
	}
	return errno
}

func (q *QP) stepFailed(attr *ibv.QPAttr, errno syscall.Errno, what string) *report.Error {
	text := fmt.Sprintf("QP %d to %v", q.Number, attr.State)
	if what != "" {
		text += ", " + what
	}
	return fail.Call("ibv_modify_qp", q.dev.Name, errno, "%s", text)
}

// State asks the device. A queue pair that cannot be asked, or is closed,
// returns the state that it was brought to last.
func (q *QP) State() ibv.QPState {
	var attr ibv.QPAttr
	if errno := q.call(func(lib *ibv.Calls) (errno syscall.Errno) { attr, errno = lib.QueryQP(q.raw); return errno }); errno == 0 {
		return attr.State
	}
	q.life.Lock()
	defer q.life.Unlock()
	return q.life.state
}

// mtu is the largest payload of its packets, in bytes, once it is connected.
func (q *QP) mtu() int {
	q.life.Lock()
	defer q.life.Unlock()
	return q.life.mtu
}

// Pointer is struct ibv_qp*, for the C lane.
func (q *QP) Pointer() uintptr { return uintptr(q.raw) }

// Close destroys the queue pair; whatever was posted on it is over then. It
// waits for a call that another goroutine has in the library, and the library
// waits until events of the queue pair are handled.
func (q *QP) Close() error {
	q.use.Lock()
	closed := q.use.closed
	q.use.closed = true
	q.use.Unlock()
	if closed {
		return nil
	}
	q.card.Disown(q.raw)
	if errno := q.card.Lib.DestroyQP(q.raw); errno != 0 {
		return fail.Call("ibv_destroy_qp", q.dev.Name, errno, "QP %d", q.Number)
	}
	return nil
}
