// Package streams carries a comm over TCP: streams that the executor pumps.
package streams

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/carrier"
	"weft/transport/fastpath"
	"weft/transport/rendezvous"
	"weft/transport/session"
	"weft/transport/task"
	"weft/transport/tcp"
)

// Shared is what the streams of all comms of a process share.
type Shared struct {
	Knobs  *knob.Values
	Log    report.Logger // of the process
	Net    *rendezvous.Network
	Flows  *tcp.Flows
	Reaper *tcp.Reaper
	Small  *tcp.Coalescer

	egress       tcp.Egress
	noCongestion sync.Once // a congestion control that cannot be had is said once
	noZeroCopy   sync.Once // and so is zero-copy
}

// options are what is known of a comm that streams are to carry.
type options struct {
	carrier.For
	conns []*rendezvous.Conn // of a finished handshake
	stash uint32             // bytes that the peer keeps of messages ahead, as it said to a sender
}

// Carrier moves bytes through streams that the executor pumps.
type Carrier struct {
	shared *Shared
	opts   options // without conns once it is open
	cookie uint64  // the executor's name for the comm
	fp     *fastpath.Comm
	comm   carrier.Comm // once it is open
	why    string       // the first stream has its congestion control
	paths  []string     // interfaces and addresses that the streams run between, each once
	pathOf []int        // by stream
	zero   bool         // large payloads are to be sent from where they lie

	mu    sync.Mutex
	fds   []int  // of the streams, until close; protected by mu
	owned func() // says that what the comm has not written has its owner; once fds are forgotten
}

// carrier is what carries a comm; until it is open, its connections are the caller's.
func (s *Shared) carrier(o options) *Carrier {
	return &Carrier{shared: s, opts: o, cookie: o.Reserve()}
}

// ID names the comm to the executor.
func (t *Carrier) ID() uint64 { return t.cookie }

// Slab makes one and attaches the streams.
func (t *Carrier) Slab() (*fastpath.Comm, error) {
	var err error
	t.fp, err = fastpath.New(fastpath.Options{Kind: t.opts.Kind, Device: uint32(t.opts.Device.Index), Cookie: t.cookie, Events: t.opts.NetEvents})
	if err != nil {
		return nil, fmt.Errorf("no memory for a connection: %w", err)
	}
	if err := t.attach(); err != nil {
		t.fp.Close()
		t.fp.Free()
		for _, fd := range t.fds {
			fastpath.CloseFD(fd)
		}
		return nil, err
	}
	return t.fp, nil
}

// Open has the streams looked after.
func (t *Carrier) Open(c carrier.Comm) error {
	t.comm = c
	t.shared.Flows.Add(t, len(t.fds))
	return nil
}

func (t *Carrier) attach() error {
	for _, k := range t.opts.conns {
		path := t.shared.pathOf(k)
		at := slices.Index(t.paths, path)
		if at < 0 {
			at, t.paths = len(t.paths), append(t.paths, path)
		}
		t.pathOf = append(t.pathOf, at)
		own := t.shared.Net.Local.Own(k.Local().Addr(), k.Remote().Addr())
		t.congestion(k, path, own)
		if t.opts.Kind == fastpath.Send && !own {
			t.zeroCopy(k, path)
		}
		fd, err := t.handover(k)
		if err != nil {
			return fmt.Errorf("taking over a socket: %w", err)
		}
		t.fds = append(t.fds, fd)
		if len(t.opts.conns) > 1 {
			if err := tcp.LimitUnsent(fd); err != nil {
				return err
			}
		}
	}
	if err := tcp.AttachStreams(t.fp, 0, t.fds, t.opts.stash); err != nil {
		return fmt.Errorf("attaching streams: %w", err)
	}
	t.opts.conns = nil
	return nil
}

// congestion gives a stream its congestion control; own: to an address of this machine. A stream that this side has opened was
// given it before it connected: here the line of the connection learns why, and the log what stood in the way.
func (t *Carrier) congestion(k *rendezvous.Conn, path string, own bool) {
	s := t.shared
	why, err := tcp.CongestionFor(s.Knobs, own).Apply(k.FD)
	if t.why == "" {
		t.why = why
	}
	if err != nil {
		s.noCongestion.Do(func() { s.Log.Warn("%s: %v", path, err) })
	}
}

// zeroCopy lets the kernel send a stream's large payloads from where they lie, if it is asked for.
func (t *Carrier) zeroCopy(k *rendezvous.Conn, path string) {
	s := t.shared
	if s.Knobs.Int(knob.ZeroCopy) == 0 {
		return
	}
	if err := tcp.AllowZeroCopy(k.FD); err != nil {
		s.noZeroCopy.Do(func() { s.Log.Warn("%s: %v", path, err) })
		return
	}
	t.zero = true
}

// handover moves a connection out of Go's poller, making room for its second
// descriptor if need be.
func (t *Carrier) handover(k *rendezvous.Conn) (int, error) {
	for {
		fd, err := k.Handover()
		if err == nil || !task.Exhausted(err) || !t.shared.Net.Files.Raise(t.opts.Log) {
			return fd, err
		}
	}
}

// Describe ends the log's line about a new comm, whose streams are open.
func (t *Carrier) Describe(via string) string {
	facts := tcp.ReadFacts(t.fds[0])
	zero := ""
	if t.zero {
		zero = ", zero-copy"
	}
	return fmt.Sprintf("tcp%s, %d stream%s (%s), MTU %d, MSS %d, TOS %d, congestion control %s (%s)%s", via,
		len(t.fds), report.Plural(len(t.fds)), report.Few(t.paths, 4, ", "), facts.MTU, facts.MSS, facts.TOS, facts.Congestion, t.why, zero)
}

// pathOf tells by which interface and between which addresses a connection runs.
func (s *Shared) pathOf(k *rendezvous.Conn) string {
	local, remote := k.Local().Addr(), k.Remote().Addr()
	b := make([]byte, 0, 64)
	if name := s.egress.Interface(k.FD, local, remote); name != "" {
		b = append(append(b, name...), ' ')
	}
	return string(remote.AppendTo(append(local.AppendTo(b), " to "...)))
}

// Streams asks the kernel; a closed comm counts as ended.
func (t *Carrier) Streams() carrier.StreamState {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := carrier.StreamState{Ended: true}
	for _, fd := range t.fds {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			continue
		}
		const established, finWait1, finWait2 = 1, 4, 5
		switch info.State {
		case established, finWait1, finWait2:
			st.Ended = false
		}
		st.Bytes += info.Bytes_received
		st.Acked += info.Bytes_acked
		st.Packets += uint64(info.Data_segs_out)
		st.Again += uint64(info.Total_retrans - min(info.Total_retrans, info.Dsack_dups))
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			st.Unread += n
		}
	}
	return st
}

// Wants has the comm's small sends looked at, whether they are to be coalesced. It waits for the locks of short looks only.
func (t *Carrier) Wants() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fds != nil {
		t.shared.Small.Add(t.fp)
	}
}

// Forget lets go of the streams.
func (t *Carrier) Forget() {
	t.shared.Flows.Remove(t)
	t.mu.Lock()
	t.fds = nil
	t.mu.Unlock()
	t.owned = t.shared.Small.Remove(t.fp)
}

// Mute says the end of this side's bytes. A peer that has closed a comm may end its process while its kernel still has bytes for
// us: a clear-to-send that arrives then would have it reset the stream, and drop them.
func (t *Carrier) Mute() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, fd := range t.fds {
		_ = unix.Shutdown(fd, unix.SHUT_WR) // of a stream that has ended it says nothing new
	}
}

// Cut resets the streams if the kernel still reads the host's memory, which is not to be read any more.
func (t *Carrier) Cut() { tcp.Cut(t.fp) }

// Shut lets the streams drain, so that bytes with the kernel still arrive; busy: of requests that the host has given up, with
// their memory, no more than it has copied.
func (t *Carrier) Shut(m *session.Member, busy bool) {
	m.Part()
	if busy {
		t.Cut()
	}
	if t.zero {
		t.comm.Log().Info(report.Net, "close on %s with %s: %s", t.opts.Device.Name, t.opts.Peer, t.uncopied())
	}
	fds, rest := tcp.DetachStreams(t.fp)
	t.shared.Reaper.Add(fds, tcp.Rest{Bytes: rest, Device: t.opts.Device.Name, Peer: t.opts.Peer}, t.fp)
	t.owned()
}

// uncopied tells how much of what was sent the kernel did not copy.
func (t *Carrier) uncopied() string {
	is := t.fp.Snapshot()
	text := fmt.Sprintf("zero-copy: of %d bytes sent, %d were not copied", is.Bytes, is.Uncopied)
	if is.Copies {
		text += "; then the kernel copied, as it does on a path inside the machine, and for a card without scatter-gather (ethtool -k)"
	}
	if is.NotPinned {
		text += "; some could not be pinned: see ulimit -l and net.core.optmem_max"
	}
	return text
}
