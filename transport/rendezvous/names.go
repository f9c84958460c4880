package rendezvous

import (
	"strconv"
	"strings"

	"weft/internal/report"
	"weft/transport/wire"
)

// Versions tells two hellos that cannot work together, naming both hosts.
func Versions(mine, theirs *wire.Hello) *report.Error {
	if mine.Speaks == theirs.Speaks {
		return nil
	}
	return report.Errorf(report.Usage, "handshake", "%s runs weft %s (wire version %d), %s runs weft %s (wire version %d)",
		mine.Host, Build(mine), mine.Speaks, theirs.Host, Build(theirs), theirs.Speaks).
		Try("install the same weft on both hosts")
}

// Build is how messages call the build that a process runs.
func Build(h *wire.Hello) string {
	if h.Build == "" {
		return "of an unnamed build"
	}
	return h.Build
}

// EndName is how messages call the device and process at the other end of a comm.
func EndName(h *wire.Hello, c *Conn) string {
	return h.Name + " of " + PeerName(h, c)
}

// EndDevice is the device of an end, by its name.
func EndDevice(name string) string {
	device, _, _ := strings.Cut(name, " of ")
	return device
}

// PeerName is how messages call the process at the other end of c.
func PeerName(h *wire.Hello, c *Conn) string {
	return h.Host + " pid " + strconv.FormatUint(uint64(h.PID), 10) + " (" + c.Remote().String() + ")"
}
