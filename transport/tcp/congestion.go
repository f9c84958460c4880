package tcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
)

// Congestion is which congestion control a data stream is to have, for what
// this side sends.
type Congestion struct {
	Name string // "": what the administrator chose, by sysctl or route
	Why  string
}

// ownHost is the congestion control between processes of one host, where no
// packet is lost and no queue is another's: BBR's model of a path makes it wait
// there. Every kernel has it.
const ownHost = "reno"

// Why a stream has the congestion control that it has.
const (
	theSystems = "the system's"
	sameHost   = "same host"
)

// CongestionFor reads WEFT_CONGESTION; own: the peer's address is one of this
// machine's.
func CongestionFor(k *knob.Values, own bool) Congestion {
	switch name := k.Text(knob.Congestion); {
	case name == "system" || (name == "" || name == "auto") && !own:
		return Congestion{"", theSystems}
	case name == "" || name == "auto":
		return Congestion{ownHost, sameHost}
	default:
		return Congestion{name, knob.Lookup(knob.Congestion).Name}
	}
}

// Apply sets it on a socket and says why the socket has what it has then. The
// error, of a name that was asked for, is for the log: what the administrator chose
// stays, and the connection serves.
//
// The connecting side, which sends the data, applies it before it connects. A
// connection that has begun with BBR is paced by the kernel's timers for good, under
// whatever control comes later: bbr_init sets sk_pacing_status, and nothing takes it
// back.
func (c Congestion) Apply(fd int) (why string, err error) {
	if c.Name == "" {
		return c.Why, nil
	}
	failed := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, c.Name)
	switch {
	case failed == nil:
		return c.Why, nil
	case c.Why == sameHost: // nobody asked for it
		return theSystems, nil
	}
	return theSystems, refused(c.Name, failed, "/proc")
}

// refused says what stands in the way of a congestion control, and what there is
// instead.
func refused(name string, failed error, procfs string) error {
	knobName := knob.Lookup(knob.Congestion).Name
	e := report.Errorf(report.Host, knobName, "setsockopt TCP_CONGESTION=%q: %w", name, failed)
	have := func(what string) string {
		sysctl := "tcp_" + what + "_congestion_control"
		text, err := os.ReadFile(filepath.Join(procfs, "sys", "net", "ipv4", sysctl))
		if err != nil {
			return "net.ipv4." + sysctl
		}
		return fmt.Sprintf("%s (net.ipv4.%s)", strings.Join(strings.Fields(string(text)), ", "), sysctl)
	}
	switch {
	case errors.Is(failed, syscall.ENOENT):
		return e.Try("the kernel has %s: name one of these, or load the module of that one; the system's is used", have("available")).See("WEFT-145")
	case errors.Is(failed, syscall.EPERM):
		return e.Try("a process without CAP_NET_ADMIN may choose %s, and none where the route says congctl lock; the system's is used", have("allowed"))
	}
	return e.Try("a seccomp or container profile may forbid that option; the system's is used")
}
