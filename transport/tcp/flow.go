package tcp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Flow is what the kernel says of the bytes that a stream has taken.
type Flow struct {
	Acked   uint64        // bytes that the peer's kernel has acknowledged, of all so far
	Under   bool          // packets are under way
	Waiting bool          // bytes wait to be sent
	Repeats int           // how often what is under way was sent again since the last progress
	Window  int           // bytes that the peer takes now; 0 also of a kernel before 5.4, which does not tell
	Heard   time.Duration // since the peer's last acknowledgement of anything
	Segment int           // bytes that the largest packet carries
	MTU     int           // of the path, as far as the kernel knows: its largest packets are of this size
}

// ReadFlow asks the kernel.
func ReadFlow(fd int) (Flow, error) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return Flow{}, fmt.Errorf("getsockopt TCP_INFO: %w", err)
	}
	return Flow{Acked: i.Bytes_acked, Under: i.Unacked > 0, Waiting: i.Notsent_bytes > 0, Repeats: int(i.Retransmits), Window: int(i.Snd_wnd),
		Heard: time.Duration(i.Last_ack_recv) * time.Millisecond, Segment: int(i.Snd_mss), MTU: int(i.Pmtu)}, nil
}

// Owes reports whether there is something that the peer would take and has not
// acknowledged. Behind a window that is closed, or too small for a packet, what
// waits may wait.
func (f *Flow) Owes() bool { return f.Under || f.Waiting && f.Window > 0 && f.Window >= f.Segment }

// Lost reports whether what is owed does not arrive, as far as the kernel has
// tried: it repeats it, or cannot even hand the first packet to the interface.
func (f *Flow) Lost() bool { return f.Repeats > 0 || !f.Under }
