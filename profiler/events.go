package profiler

import (
	"fmt"
	"strings"

	"weft/transport/record/format"
)

// events are NCCL's names of what a profiler can ask for, by the number of the bit.
var events = [format.Types]string{
	format.Group: "group", format.Coll: "coll", format.P2p: "p2p", format.ProxyOp: "proxyop", format.ProxyStep: "proxystep",
	format.ProxyCtrl: "proxyctrl", format.KernelCh: "kernelch", format.NetPlugin: "netplugin", format.GroupAPI: "groupapi",
	format.CollAPI: "collapi", format.P2pAPI: "p2papi", format.KernelLaunch: "kernellaunch", format.CeColl: "cecoll",
	format.CeSync: "cesync", format.CeBatch: "cebatch", format.KernelPhase: "kernelphase",
}

const (
	every = 1<<format.Types - 1
	// usual leaves out what the proxy's threads do between operations, which comes
	// as often as they look for work.
	usual = every &^ (1 << format.ProxyCtrl)
)

// Mask is the activation mask of a list of names, "all" among them; "" is every
// event but proxyctrl. Upper and lower case are the same.
func Mask(list string) (int32, error) {
	if strings.TrimSpace(list) == "" {
		return usual, nil
	}
	mask := int32(0)
names:
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "all" {
			mask |= every
			continue
		}
		for bit, known := range events {
			if name == known {
				mask |= 1 << bit
				continue names
			}
		}
		return 0, fmt.Errorf("%q is no event: there are %s, and all", name, strings.Join(events[:], ", "))
	}
	return mask, nil
}
