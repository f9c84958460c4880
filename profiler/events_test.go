package profiler

import (
	"testing"

	"weft/abi"
	"weft/transport/record/format"
)

// TestTypesAreBits holds the numbers in files of records to the header's bits.
func TestTypesAreBits(t *testing.T) {
	for number, bit := range [format.Types]int{
		format.Group: abi.ProfileGroup, format.Coll: abi.ProfileColl, format.P2p: abi.ProfileP2p, format.ProxyOp: abi.ProfileProxyOp,
		format.ProxyStep: abi.ProfileProxyStep, format.ProxyCtrl: abi.ProfileProxyCtrl, format.KernelCh: abi.ProfileKernelCh,
		format.NetPlugin: abi.ProfileNetPlugin, format.GroupAPI: abi.ProfileGroupApi, format.CollAPI: abi.ProfileCollApi,
		format.P2pAPI: abi.ProfileP2pApi, format.KernelLaunch: abi.ProfileKernelLaunch, format.CeColl: abi.ProfileCeColl,
		format.CeSync: abi.ProfileCeSync, format.CeBatch: abi.ProfileCeBatch, format.KernelPhase: abi.ProfileKernelPhase,
	} {
		if bit != 1<<number {
			t.Errorf("type %d is the bit %#x", number, bit)
		}
	}
}

// TestMask asks for every event that the header names, also one that a newer header brings.
func TestMask(t *testing.T) {
	all := int32(0)
	for bit, name := range abi.ProfilerEvents {
		if name == "" {
			continue
		}
		if mask, err := Mask(" " + name); err != nil || mask != 1<<bit {
			t.Errorf("%s: %#x, %v", name, mask, err)
		}
		all |= 1 << bit
	}
	for list, want := range map[string]int32{"": 0xffdf, "all": all, "Coll, proxyctrl": 1<<format.Coll | 1<<format.ProxyCtrl, "coll,colls": 0, ",": 0} {
		if mask, err := Mask(list); mask != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %#x, want %#x, %v", list, mask, want, err)
		}
	}
}
