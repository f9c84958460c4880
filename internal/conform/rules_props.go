package conform

import (
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"weft/internal/host"
)

// propCheck is a rule about the properties of each device.
func propCheck(judge func(e *Env, p *proc, dev int, x *host.Props)) func(*Env) {
	return func(e *Env) {
		p := e.proc("process")
		for dev := range p.ndev {
			// Filled with 0, so that a field that was left out judges nothing here.
			x, err := p.net.Props(dev, "fill", 0)
			e.must(err, "getProperties")
			for _, s := range []*string{&x.Name, &x.PCIPath} {
				if *s == "(fill00)" {
					*s = "(null)"
				}
			}
			judge(e, p, dev, x)
		}
	}
}

var propRules = []*Rule{
	{ID: "props.written", From: 3, Says: "getProperties writes every field of the version: the struct comes uninitialised",
		Basis: basisLoader, Check: func(e *Env) {
			p := e.proc("process")
			for dev := range p.ndev {
				a, err := p.net.Props(dev, "fill", 0xa5)
				e.must(err, "getProperties into memory filled with 0xa5")
				b, err := p.net.Props(dev, "fill", 0x5a)
				e.must(err, "getProperties into memory filled with 0x5a")
				var left []string
				for k, v := range a.Raw {
					if k != "ns" && k != "rc" && v != b.Raw[k] {
						left = append(left, k)
					}
				}
				sort.Strings(left)
				if left != nil {
					e.failf("device %d: not written: %s", dev, strings.Join(left, ", "))
				}
			}
		}},
	{ID: "props.name", From: 3, Says: "each device has a name, and no two have the same",
		Basis: basisLoader, Check: func() func(*Env) {
			return func(e *Env) {
				seen := map[string]int{}
				propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
					if x.Name == "" || x.Name == "(null)" {
						e.failf("device %d has the name %q", dev, x.Name)
					}
					if d, dup := seen[x.Name]; dup {
						e.failf("devices %d and %d are both called %q", d, dev, x.Name)
					}
					seen[x.Name] = dev
				})(e)
			}
		}()},
	{ID: "props.pci", Says: "pciPath is NULL or the real path of a device's directory in /sys/devices (a simulation may keep a sysfs of its own elsewhere); v2 hands out memory that NCCL frees",
		Basis: basisDoc, Check: propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
			if x.PCIPath == "(null)" {
				return
			}
			// NCCL takes the bus address from the path's end and reads class and links of the directories on the way up.
			st, err := os.Stat(x.PCIPath)
			if real, _ := filepath.EvalSymlinks(x.PCIPath); err != nil || !st.IsDir() || real != x.PCIPath || !strings.Contains(real, "/sys/devices/") {
				e.failf("device %d has the pciPath %q", dev, x.PCIPath)
			}
		})},
	{ID: "props.ptr", Says: "ptrSupport names NCCL_PTR_HOST and only known kinds; NCCL_PTR_DMABUF (v6 and later) means that regMrDmaBuf is set",
		Basis: basisDoc, Check: propCheck(func(e *Env, p *proc, dev int, x *host.Props) {
			known := 3
			if e.version >= 6 {
				known = 7
			}
			switch {
			case x.PtrSupport&1 == 0 || x.PtrSupport&^known != 0:
				e.failf("device %d has ptrSupport %#x", dev, x.PtrSupport)
			case x.PtrSupport&4 != 0 && !p.net.Slots["regMrDmaBuf"]:
				e.failf("device %d supports DMA-BUF but regMrDmaBuf is NULL", dev)
			}
		})},
	{ID: "props.range", From: 3, Says: "speed and maxComms are positive, port is not negative, latency is a number not below 0, maxRecvs is 1 to 8",
		Basis: basisHeader, Check: propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
			if x.Speed <= 0 || x.MaxComms <= 0 || x.Port < 0 {
				e.failf("device %d: speed %d, maxComms %d, port %d", dev, x.Speed, x.MaxComms, x.Port)
			}
			if e.version >= host.SinceGroups && (x.MaxRecvs < 1 || x.MaxRecvs > 8 || x.Latency < 0 || math.IsNaN(x.Latency) || math.IsInf(x.Latency, 0)) {
				e.failf("device %d: maxRecvs %d, latency %v", dev, x.MaxRecvs, x.Latency)
			}
		})},
	{ID: "props.device", From: 7, Says: "netDeviceType is one that NCCL knows (host 0, unpack 1), else it drops the plugin",
		Basis: basisLoader, Check: propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
			if x.NetDeviceType < 0 || x.NetDeviceType > 1 {
				e.failf("device %d has netDeviceType %d", dev, x.NetDeviceType)
			}
		})},
	{ID: "props.limits", From: 9, Says: "maxP2pBytes and maxCollBytes are in 1 to 1 TiB; from v11 maxMultiRequestSize is at least 1",
		Basis: basisLoader, Check: propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
			if x.MaxP2pBytes-1 >= 1<<40 || x.MaxCollBytes-1 >= 1<<40 {
				e.failf("device %d: maxP2pBytes %d, maxCollBytes %d", dev, x.MaxP2pBytes, x.MaxCollBytes)
			}
			if e.version >= host.SinceContexts && x.MaxMultiRequestSize < 1 {
				e.failf("device %d: maxMultiRequestSize %d", dev, x.MaxMultiRequestSize)
			}
		})},
	{ID: "props.vdevice", From: 9, Says: "vProps names devices that exist, at least one and no more than its struct has room for; a physical device names itself",
		Basis: basisLoader, Check: propCheck(func(e *Env, p *proc, dev int, x *host.Props) {
			if x.NVDevs < 1 || x.NVDevs > int64(p.net.Devs) || int(x.NVDevs) != len(x.VDevs) {
				e.failf("device %d has vProps.ndevs %d", dev, x.NVDevs)
			}
			for _, d := range x.VDevs {
				if d < 0 || d >= int64(p.ndev) {
					e.failf("device %d is made of device %d of %d", dev, d, p.ndev)
				}
			}
		})},
	{ID: "props.rail", From: 12, Says: "railId and planeId are -1 or an identity",
		Basis: basisHeader, Check: propCheck(func(e *Env, _ *proc, dev int, x *host.Props) {
			if x.RailID < -1 || x.PlaneID < -1 {
				e.failf("device %d: railId %d, planeId %d", dev, x.RailID, x.PlaneID)
			}
		})},
	{ID: "props.beyond", Care: true, Says: "properties of a device that does not exist are an error",
		Basis: basisWeft, Check: func(e *Env) {
			p := e.proc("process")
			for _, dev := range []int{-1, p.ndev, p.ndev + 1000} {
				if _, err := p.call("main", "props", host.Args{"dev", dev, "fill", 0}); host.Code(err) == host.Success {
					e.failf("device %d of %d: ncclSuccess", dev, p.ndev)
				}
			}
		}},
}
