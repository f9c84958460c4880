package tcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
)

// Options are the socket options of one kind of socket. The zero value sets
// nothing; -1 leaves a number to the kernel.
type Options struct {
	RcvBuf, SndBuf int
	TOS            int  // the whole byte of IP_TOS or IPV6_TCLASS
	NoDelay        bool // frames go out at once: weft does its own gathering
	UserTimeout    time.Duration
	Congestion     Congestion // to be set before connect, see its Apply; what stands in the way is told by whoever applies it again
	MaxSeg         int        // bytes that a packet carries at most, both ways, if set before connect; 0: what both interfaces take
}

// DataOptions are those of a stream. It has no user timeout: a peer whose
// window is full for a long time is alive, and that option would kill it.
// trafficClass is what NCCL gave with the context or connection, -1 if none.
func DataOptions(k *knob.Values, trafficClass int32) Options {
	return Options{
		RcvBuf: int(k.Int(knob.SocketRcvBuf)), SndBuf: int(k.Int(knob.SocketSndBuf)),
		TOS: TOS(k, trafficClass), NoDelay: true,
	}
}

// controlSegment passes wherever IPv6 does, whose smallest MTU is 1280.
const controlSegment = 1280 - 40 - 20

// ControlOptions are those of the control connection, which is nearly silent:
// keepalive and the user timeout tell a dead peer from a quiet one. Its packets are
// small, so that it has its say on a path that loses large ones.
func ControlOptions(k *knob.Values, trafficClass int32) Options {
	return Options{
		RcvBuf: -1, SndBuf: -1, TOS: TOS(k, trafficClass), NoDelay: true,
		UserTimeout: k.Seconds(knob.Timeout), MaxSeg: controlSegment,
	}
}

// TOS is the byte to set: the environment's, else NCCL's traffic class if it
// is one, else -1.
func TOS(k *knob.Values, trafficClass int32) int {
	if tos := k.Int(knob.SocketTOS); tos >= 0 {
		return int(tos)
	}
	if trafficClass >= 0 && trafficClass <= 255 {
		return int(trafficClass)
	}
	return -1
}

// Apply sets the options. Before connect or listen, so that the window scale
// fits the buffers and the first packet carries the TOS.
func (o Options) Apply(fd int) error {
	if o.RcvBuf >= 0 {
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, o.RcvBuf, "SO_RCVBUF"); err != nil {
			return err
		}
	}
	if o.SndBuf >= 0 {
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, o.SndBuf, "SO_SNDBUF"); err != nil {
			return err
		}
	}
	if o.TOS >= 0 {
		if err := setTOS(fd, o.TOS); err != nil {
			return err
		}
	}
	if o.NoDelay {
		if err := setInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, "TCP_NODELAY"); err != nil {
			return err
		}
	}
	_, _ = o.Congestion.Apply(fd)
	if o.MaxSeg > 0 {
		if err := setInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MaxSeg, "TCP_MAXSEG"); err != nil {
			return err
		}
	}
	if o.UserTimeout > 0 {
		return setKeepalive(fd, o.UserTimeout)
	}
	return nil
}

// setTOS sets both families on an IPv6 socket: a v4-mapped peer is served by
// the IPv4 option.
func setTOS(fd, tos int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("getsockopt SO_DOMAIN: %w", err)
	}
	if domain == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tos)
		return setInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos, "IPV6_TCLASS")
	}
	return setInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tos, "IP_TOS")
}

// setKeepalive finds a dead peer within t: idle data is covered by the user
// timeout, an idle connection by probes, of which three fit into t.
func setKeepalive(fd int, t time.Duration) error {
	every := max(int(t/time.Second)/4, 1)
	for _, s := range []struct {
		level, opt, value int
		name              string
	}{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, every, "TCP_KEEPIDLE"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, every, "TCP_KEEPINTVL"},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3, "TCP_KEEPCNT"},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(t / time.Millisecond), "TCP_USER_TIMEOUT"},
	} {
		if err := setInt(fd, s.level, s.opt, s.value, s.name); err != nil {
			return err
		}
	}
	return nil
}

func setInt(fd, level, opt, value int, name string) error {
	if err := unix.SetsockoptInt(fd, level, opt, value); err != nil {
		return fmt.Errorf("setsockopt %s=%d: %w", name, value, err)
	}
	return nil
}

// LimitUnsent bounds what a socket takes before the kernel can send it, for one
// of several streams: what a slow one has taken no other can carry, and the
// message waits for it. What is on its way is not bounded by this.
func LimitUnsent(fd int) error {
	const bytes = 128 << 10 // a frame
	return setInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes, "TCP_NOTSENT_LOWAT")
}

// AllowZeroCopy lets the streams' pump send large payloads from where they lie.
func AllowZeroCopy(fd int) error {
	if err := setInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1, "SO_ZEROCOPY"); err != nil {
		return report.Errorf(report.Host, knob.Lookup(knob.ZeroCopy).Name, "%w", err).
			Try("this kernel does not allow it on a connection; what is sent is copied, as without %s", knob.Lookup(knob.ZeroCopy).Name)
	}
	return nil
}

// DeferAccept makes the kernel keep a connection from accept until its first
// bytes are there; a client that says nothing costs the listener nothing.
func DeferAccept(fd int, wait time.Duration) error {
	return setInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, max(int(wait/time.Second), 1), "TCP_DEFER_ACCEPT")
}

// BindToDevice ties a socket to the device's interface, so that its packets
// leave there whatever the routing table prefers. It returns false, without an
// error, where that is not allowed (kernels before 5.7 want CAP_NET_RAW).
//
// Not for a peer on this machine: packets to an address of its own travel over
// lo, whichever interface has the address, and a bound socket never sees them.
func (d *Device) BindToDevice(fd int) (bool, error) {
	err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, d.Name)
	if errors.Is(err, syscall.EPERM) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("setsockopt SO_BINDTODEVICE=%s: %w", d.Name, err)
	}
	return true, nil
}

// Facts are what a connected socket turned out to have, for the log's line.
type Facts struct {
	MTU, MSS, TOS int    // MTU: of the path, as far as the kernel knows
	Congestion    string // its congestion control
}

// ReadFacts reads them back; what cannot be read is -1, or "unknown".
func ReadFacts(fd int) Facts {
	get := func(level, opt int) int {
		n, err := unix.GetsockoptInt(fd, level, opt)
		if err != nil {
			return -1
		}
		return n
	}
	f := Facts{MSS: get(unix.IPPROTO_TCP, unix.TCP_MAXSEG)}
	if get(unix.SOL_SOCKET, unix.SO_DOMAIN) == unix.AF_INET6 {
		f.MTU, f.TOS = get(unix.IPPROTO_IPV6, unix.IPV6_MTU), get(unix.IPPROTO_IPV6, unix.IPV6_TCLASS)
	} else {
		f.MTU, f.TOS = get(unix.IPPROTO_IP, unix.IP_MTU), get(unix.IPPROTO_IP, unix.IP_TOS)
	}
	var err error
	if f.Congestion, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil {
		f.Congestion = "unknown"
	}
	return f
}

// Somaxconn is the kernel's limit of a listen backlog below procfs root
// "/proc", or 0 when it cannot be read.
func Somaxconn(procfs string) int {
	text, err := os.ReadFile(filepath.Join(procfs, "sys", "net", "core", "somaxconn"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
