package profiler

import (
	"fmt"
	"strings"

	"weft/abi"
	"weft/transport/record/format"
)

// usual are the events whose contents are recorded, but what the proxy's threads do
// between operations, which comes as often as they look for work. An event that a
// newer header brings is recorded without contents, if it is asked for.
const usual = (1<<format.Types - 1) &^ (1 << format.ProxyCtrl)

// Mask is the activation mask of a list of names, "all" among them; "" is every
// event of known contents but proxyctrl. Upper and lower case are the same.
func Mask(list string) (int32, error) {
	if strings.TrimSpace(list) == "" {
		return usual, nil
	}
	bits, names := map[string]int32{}, []string{}
	for bit, name := range abi.ProfilerEvents {
		if name != "" {
			name = strings.ToLower(name)
			names = append(names, name)
			bits[name] = 1 << bit
			bits["all"] |= 1 << bit
		}
	}
	mask := int32(0)
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if bits[name] == 0 {
			return 0, fmt.Errorf("%q is no event: there are %s, and all", name, strings.Join(names, ", "))
		}
		mask |= bits[name]
	}
	return mask, nil
}
