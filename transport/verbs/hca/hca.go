// Package hca reads NCCL_IB_HCA, which says what ports of what cards are used, and
// on which rails and planes they are.
package hca

import (
	"fmt"
	"strconv"
	"strings"

	"weft/transport/rdma"
)

const (
	maxEntries = 32      // as in NCCL: what follows is not read
	maxPlanes  = 12      // planes that NCCL can tell apart
	planeLimit = 1 << 14 // a plane from here on would collide with NCCL's fused devices
	anyPort    = -1
)

// Filter is a parsed NCCL_IB_HCA: [^][=]name[:port[:rail[:plane]]],...
// The two marks come first, in this order, and hold for the whole list.
type Filter struct {
	exclude bool
	exact   bool
	entries []entry
}

type entry struct {
	name        string
	port        int // anyPort: every port
	rail, plane int16
}

// Parse never fails: NCCL's grammar has no illegal text, only lists that
// match nothing. The lines say what was read over or cannot be used.
func Parse(text string) (f Filter, problems []string) {
	text, f.exclude = strings.CutPrefix(text, "^")
	text, f.exact = strings.CutPrefix(text, "=")
	planes := map[int16]bool{}
	for item := range strings.SplitSeq(text, ",") {
		name, rest, _ := strings.Cut(item, ":")
		if name == "" {
			continue
		}
		if len(f.entries) == maxEntries {
			problems = append(problems, fmt.Sprintf("NCCL_IB_HCA: only the first %d entries count; %q and what follows is not read", maxEntries, item))
			break
		}
		port, rest, _ := strings.Cut(rest, ":")
		rail, rest, _ := strings.Cut(rest, ":")
		plane, _, _ := strings.Cut(rest, ":")
		e := entry{name: name, port: number(port, anyPort), rail: id(rail), plane: id(plane)}
		if e.plane != rdma.NoID && (e.plane >= planeLimit || e.plane < 0 || len(planes) == maxPlanes && !planes[e.plane]) {
			problems = append(problems, fmt.Sprintf("NCCL_IB_HCA: entry %q: NCCL knows at most %d planes, numbered below %d; its plane is left out", item, maxPlanes, planeLimit))
			e.plane = rdma.NoID
		}
		if e.plane != rdma.NoID {
			planes[e.plane] = true
		}
		f.entries = append(f.entries, e)
	}
	return f, problems
}

// number reads digits as atoi does: up to the first that is none, so that a
// port that is no number is 0, which no port is.
func number(text string, absent int) int {
	if text == "" {
		return absent
	}
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// id reads a rail or plane, which the tables hold in 16 bits.
func id(text string) int16 {
	n := number(text, rdma.NoID)
	if n < -1 || n > 1<<15-1 {
		return rdma.NoID
	}
	return int16(n)
}

// Takes reports whether a port of a device is wanted, and its rail and plane.
// An empty list matches everything, so "=" takes all and "^" nothing.
func (f Filter) Takes(name string, port int) (rail, plane int16, ok bool) {
	if len(f.entries) == 0 {
		return rdma.NoID, rdma.NoID, !f.exclude
	}
	for _, e := range f.entries {
		if !(name == e.name || !f.exact && strings.HasPrefix(name, e.name)) || e.port != anyPort && e.port != port {
			continue
		}
		if f.exclude {
			return rdma.NoID, rdma.NoID, false
		}
		return e.rail, e.plane, true
	}
	return rdma.NoID, rdma.NoID, f.exclude
}

// Names reports a list that says what is used, not what is left out.
func (f Filter) Names() bool { return len(f.entries) > 0 && !f.exclude }
