package ifname

import "strings"

// NCCL's limits: entries of a list, and interfaces that one search yields.
const maxInterfaces = 16

// filter is a parsed NCCL_SOCKET_IFNAME: [^][=]name[:port[:rail[:plane]]],...
// The two marks come first, in this order, and hold for the whole list.
type filter struct {
	exclude bool
	exact   bool
	names   []string
}

// parseFilter never fails: NCCL's grammar has no illegal text, only lists that
// match nothing. What follows a colon belongs to NCCL_IB_HCA, whose grammar
// this is too, and means nothing for an interface.
func parseFilter(text string) filter {
	var f filter
	text, f.exclude = strings.CutPrefix(text, "^")
	text, f.exact = strings.CutPrefix(text, "=")
	for entry := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(entry, ":")
		if name == "" {
			continue
		}
		if len(f.names) == maxInterfaces {
			break
		}
		f.names = append(f.names, name)
	}
	return f
}

// takes reports whether the filter lets an interface through. An empty list
// matches everything, so "=" takes all and "^=" nothing.
func (f filter) takes(name string) bool { return f.lists(name) != f.exclude }

func (f filter) lists(name string) bool {
	if len(f.names) == 0 {
		return true
	}
	for _, n := range f.names {
		if name == n || !f.exact && strings.HasPrefix(name, n) {
			return true
		}
	}
	return false
}
