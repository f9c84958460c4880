package report

// Cause says whose trouble an error is. It decides the result code that the
// host sees, and nothing else does.
type Cause uint8

const (
	Internal    Cause = iota // a fault of weft; the zero value, so that a forgotten cause is never blamed on others
	Peer                     // the other process: it went away, refused, broke the protocol
	Network                  // the path to it: unreachable, timed out, reset
	Host                     // this machine: limits, permissions, memory, kernel
	Usage                    // the user: configuration, or sizes of send and receive that do not match
	Misuse                   // the caller: a stale handle, a NULL where none may be
	Cuda                     // libcuda said no
	Unsupported              // the operation does not exist here
)

func (c Cause) String() string {
	names := [...]string{"internal", "peer", "network", "host", "usage", "misuse", "cuda", "unsupported"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}
