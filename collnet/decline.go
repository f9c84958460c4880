package collnet

import (
	"weft/abi"
	"weft/internal/report"
)

// Decline is a collNet that offers no device.
//
// Its init succeeds with a NULL context and devices returns 0. That is the quiet
// way out in every release:
//   - 2.6 to 2.12 look at init and devices once and keep their collNet pointer
//     NULL; a failed init is the same to them, but for a line in the log.
//   - 2.13 to 2.27 do so under a state that becomes "disabled" either way;
//     adapters around old tables pass a failed init through a macro that logs it.
//   - 2.28.3 inits for the first communicator of each load, and at its end calls
//     finalize through the communicator's collNet pointer, which is NULL without
//     devices, unless the context is NULL too: any other context is a crash.
//   - 2.28.7 and later finalize only a collNet that is enabled, which one
//     without devices is not.
//
// The functions behind devices are never reached then. A host that calls one
// nevertheless gets an error, never a crash.
type Decline struct{ abi.CollNetDefaults }

func (Decline) Init(a *abi.CollNetInitArgs) error {
	if a.Ctx != nil { // tables up to v10 have none
		*a.Ctx = 0
	}
	return nil
}

func (Decline) Devices(a *abi.CollNetDevicesArgs) error {
	*a.Ndev = 0
	return nil
}

func (Decline) GetProperties(a *abi.CollNetGetPropertiesArgs) error {
	return report.Errorf(report.Misuse, "collNet.getProperties", "device %d of 0", a.Dev)
}

func (Decline) Listen(a *abi.CollNetListenArgs) error {
	*a.ListenComm = 0
	return declined("listen")
}

func (Decline) Connect(a *abi.CollNetConnectArgs) error {
	*a.CollComm = 0
	return declined("connect")
}

// ReduceSupport says the truth: nothing can be reduced here.
func (Decline) ReduceSupport(a *abi.CollNetReduceSupportArgs) error {
	*a.Supported = 0
	return nil
}

func (Decline) RegMr(a *abi.CollNetRegMrArgs) error {
	*a.Mhandle = 0
	return declined("regMr")
}

func (Decline) RegMrDmaBuf(a *abi.CollNetRegMrDmaBufArgs) error {
	*a.Mhandle = 0
	return declined("regMrDmaBuf")
}

func (Decline) DeregMr(*abi.CollNetDeregMrArgs) error { return declined("deregMr") }

func (Decline) Iallreduce(a *abi.CollNetIallreduceArgs) error {
	*a.Request = 0
	return declined("iallreduce")
}

func (Decline) Iallgather(a *abi.CollNetIallgatherArgs) error {
	*a.Request = 0
	return declined("iallgather")
}

func (Decline) Ireducescatter(a *abi.CollNetIreducescatterArgs) error {
	*a.Request = 0
	return declined("ireducescatter")
}

func (Decline) Iflush(a *abi.CollNetIflushArgs) error {
	*a.Request = 0
	return declined("iflush")
}

func (Decline) MakeVDevice(a *abi.CollNetMakeVDeviceArgs) error {
	return declined("makeVDevice")
}

func (Decline) CloseColl(*abi.CollNetCloseCollArgs) error { return declined("closeColl") }

func (Decline) CloseListen(*abi.CollNetCloseListenArgs) error { return declined("closeListen") }

// Finalize has nothing to release, whatever the context.
func (Decline) Finalize(*abi.CollNetFinalizeArgs) error { return nil }

func declined(call string) error {
	return report.Errorf(report.Misuse, "collNet."+call, "collNet has no device here, so nothing can have been opened").
		Try("set WEFT_COLLNET=1 where it is wanted")
}
