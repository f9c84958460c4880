package transport

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/tcp"
)

// tcpCarrier moves bytes through streams that the executor pumps.
type tcpCarrier struct {
	ctx    *Context
	dev    *Device
	cookie uint64
	fp     *fastpath.Comm
	conns  []*rendezvous.Conn // until open
	stash  uint32             // bytes that the peer keeps of messages ahead, of a sender
	facts  tcp.Facts
	why    string   // the first stream has its congestion control
	ways   []string // interfaces and addresses that the streams run between, each once
	wayOf  []int    // by stream
	flow   *flow    // once open

	mu  sync.Mutex
	fds []int // of the streams, until close; protected by mu
}

// overTCP is the carrier of a finished handshake's connections; stash is what the
// listening side said of it, for the connecting side.
func overTCP(x *Context, dev *Device, conns []*rendezvous.Conn, stash uint32) *tcpCarrier {
	return &tcpCarrier{ctx: x, dev: dev, cookie: comms.Reserve(), conns: conns, stash: stash}
}

func (t *tcpCarrier) id() uint64 { return t.cookie }

func (t *tcpCarrier) open(c *Comm) error {
	var err error
	t.fp, err = fastpath.New(fastpath.Options{Kind: c.kind, Device: uint32(t.dev.Index), Cookie: c.cookie})
	if err != nil {
		return fmt.Errorf("no memory for a connection: %w", err)
	}
	if err := t.attach(); err != nil {
		t.fp.Close()
		t.fp.Free()
		for _, fd := range t.fds {
			tcp.CloseFD(fd)
		}
		return err
	}
	c.fp = t.fp
	t.flow = &flow{t, c}
	t.ctx.core.flows.Add(t.flow, len(t.fds))
	return nil
}

func (t *tcpCarrier) attach() error {
	for _, k := range t.conns {
		way := t.ctx.core.wayOf(k)
		at := slices.Index(t.ways, way)
		if at < 0 {
			at, t.ways = len(t.ways), append(t.ways, way)
		}
		t.wayOf = append(t.wayOf, at)
		t.congestion(k, way)
		fd, err := t.ctx.handover(k)
		if err != nil {
			return fmt.Errorf("taking over a socket: %w", err)
		}
		t.fds = append(t.fds, fd)
		if len(t.conns) > 1 {
			if err := tcp.LimitUnsent(fd); err != nil {
				return err
			}
		}
	}
	t.facts = tcp.ReadFacts(t.fds[0])
	if err := tcp.AttachStreams(t.fp, 0, t.fds, t.stash); err != nil {
		return fmt.Errorf("attaching streams: %w", err)
	}
	t.conns = nil
	return nil
}

// congestion gives a stream its congestion control. One that was asked for and
// cannot be had is said once a process.
func (t *tcpCarrier) congestion(k *rendezvous.Conn, way string) {
	c := t.ctx.core
	why, err := tcp.CongestionFor(c.cfg.Knobs, c.net.Local.Own(k.Local().Addr(), k.Remote().Addr())).Apply(k.FD)
	if t.why == "" {
		t.why = why
	}
	if err != nil {
		c.noCongestion.Do(func() { c.cfg.Log.Warn("%s: %v", way, err) })
	}
}

// handover moves a connection out of Go's poller, making room for its second
// descriptor if need be.
func (x *Context) handover(k *rendezvous.Conn) (int, error) {
	for {
		fd, err := k.Handover()
		if err == nil || !task.Exhausted(err) || !x.core.net.Files.Raise(x.opts.Log) {
			return fd, err
		}
	}
}

func (t *tcpCarrier) describe(via string) string {
	return fmt.Sprintf("tcp%s, %d stream%s (%s), MTU %d, MSS %d, TOS %d, congestion control %s (%s)", via,
		len(t.fds), report.Plural(len(t.fds)), few(t.ways, 4, ", "), t.facts.MTU, t.facts.MSS, t.facts.TOS, t.facts.Congestion, t.why)
}

// wayOf tells by which interface and between which addresses a connection runs.
func (c *Core) wayOf(k *rendezvous.Conn) string {
	local, remote := k.Local().Addr(), k.Remote().Addr()
	b := make([]byte, 0, 64)
	if name := c.egress.Interface(k.FD, local, remote); name != "" {
		b = append(append(b, name...), ' ')
	}
	return string(remote.AppendTo(append(local.AppendTo(b), " to "...)))
}

// streamState is what the kernel says of a comm's streams together.
type streamState struct {
	ended  bool   // every stream has had the peer's end
	unread int    // bytes that wait for our host
	bytes  uint64 // received so far
}

// streams asks the kernel; a closed comm counts as ended.
func (t *tcpCarrier) streams() streamState {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := streamState{ended: true}
	for _, fd := range t.fds {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			continue
		}
		const established, finWait1, finWait2 = 1, 4, 5
		switch info.State {
		case established, finWait1, finWait2:
			st.ended = false
		}
		st.bytes += info.Bytes_received
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			st.unread += n
		}
	}
	return st
}

func (t *tcpCarrier) forget() {
	t.ctx.core.flows.Remove(t.flow)
	t.mu.Lock()
	t.fds = nil
	t.mu.Unlock()
}

// shut lets the streams drain, so that bytes with the kernel still arrive.
func (t *tcpCarrier) shut(m *session.Member, _ bool) {
	m.Part()
	t.ctx.core.reaper.Add(tcp.DetachStreams(t.fp), t.fp)
}

// notOpened turns what open answered into the error of connect or accept.
func (c *Comm) notOpened(err error) error {
	var e *report.Error
	if errors.As(err, &e) {
		return err
	}
	if task.Exhausted(err) {
		return task.NoFiles(c.op(), err).On(c.dev.Name).With(c.peer)
	}
	return report.Errorf(report.Host, c.op(), "%w", err).On(c.dev.Name).With(c.peer).
		Try("see ulimit -n and -v, and the memory limit of the container")
}
