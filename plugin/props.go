package plugin

import (
	"weft/abi"
	"weft/internal/report"
	"weft/transport/rdma"
)

// GetProperties writes every field, whatever the caller's table shows of them:
// hosts copy arrays by counts that they did not initialise.
func (p *process) GetProperties(a *abi.NetGetPropertiesArgs) error {
	if _, err := p.current("getProperties"); err != nil {
		return err
	}
	d, n := p.list.at(int(a.Dev))
	if d.Device == nil {
		return report.Errorf(report.Misuse, "getProperties", "device %d of %d", a.Dev, n)
	}
	*a.Props = abi.NetProperties{
		Name:             d.name,
		PciPath:          d.path,
		Guid:             d.GUID,
		PtrSupport:       int32(d.Pointers),
		RegIsGlobal:      flag(d.RegIsGlobal()),
		ForceFlush:       flag(d.Flush),
		Speed:            int32(d.SpeedMbps),
		Port:             int32(d.Port),
		Latency:          d.Latency,
		MaxComms:         int32(d.MaxComms),
		MaxRecvs:         int32(d.MaxRecvs),
		NetDeviceType:    abi.NCCL_NET_DEVICE_HOST,
		NetDeviceVersion: abi.NCCL_NET_DEVICE_INVALID_VERSION, // what a host device has for a version
		VProps:           vprops(d.Members()),
		MaxP2pBytes:      rdma.MaxBytes,
		MaxCollBytes:     rdma.MaxBytes,

		MaxMultiRequestSize: 1,
		RailId:              d.RailID,
		PlaneId:             d.PlaneID,
	}
	return nil
}

func vprops(members []int) (v abi.NetVDeviceProps) {
	for i, m := range members {
		v.Devs[i] = int32(m)
	}
	v.Ndevs = int32(len(members))
	return v
}

func flag(is bool) int32 {
	if is {
		return 1
	}
	return 0
}
