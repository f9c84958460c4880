package collnet

import (
	"weft/abi"
	"weft/internal/report"
)

// Refuse is a collNet that offers no device.
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
type Refuse struct{ abi.CollNetDefaults }

func (Refuse) Init(a *abi.CollNetInitArgs) error {
	if a.Ctx != nil { // tables up to v10 have none
		*a.Ctx = 0
	}
	return nil
}

func (Refuse) Devices(a *abi.CollNetDevicesArgs) error {
	*a.Ndev = 0
	return nil
}

func (Refuse) GetProperties(a *abi.CollNetGetPropertiesArgs) error {
	return report.Errorf(report.Misuse, "collNet.getProperties", "device %d of 0", a.Dev)
}

func (Refuse) Listen(a *abi.CollNetListenArgs) error {
	*a.ListenComm = 0
	return refused("listen")
}

func (Refuse) Connect(a *abi.CollNetConnectArgs) error {
	*a.CollComm = 0
	return refused("connect")
}

// ReduceSupport says the truth: nothing can be reduced here.
func (Refuse) ReduceSupport(a *abi.CollNetReduceSupportArgs) error {
	*a.Supported = 0
	return nil
}

func (Refuse) RegMr(a *abi.CollNetRegMrArgs) error {
	*a.Mhandle = 0
	return refused("regMr")
}

func (Refuse) RegMrDmaBuf(a *abi.CollNetRegMrDmaBufArgs) error {
	*a.Mhandle = 0
	return refused("regMrDmaBuf")
}

func (Refuse) DeregMr(*abi.CollNetDeregMrArgs) error { return refused("deregMr") }

func (Refuse) Iallreduce(a *abi.CollNetIallreduceArgs) error {
	*a.Request = 0
	return refused("iallreduce")
}

func (Refuse) Iallgather(a *abi.CollNetIallgatherArgs) error {
	*a.Request = 0
	return refused("iallgather")
}

func (Refuse) Ireducescatter(a *abi.CollNetIreducescatterArgs) error {
	*a.Request = 0
	return refused("ireducescatter")
}

func (Refuse) Iflush(a *abi.CollNetIflushArgs) error {
	*a.Request = 0
	return refused("iflush")
}

func (Refuse) Test(a *abi.CollNetTestArgs) error {
	*a.Done = 0
	return refused("test")
}

func (Refuse) CloseColl(*abi.CollNetCloseCollArgs) error { return refused("closeColl") }

func (Refuse) CloseListen(*abi.CollNetCloseListenArgs) error { return refused("closeListen") }

// Finalize has nothing to release, whatever the context.
func (Refuse) Finalize(*abi.CollNetFinalizeArgs) error { return nil }

func refused(call string) error {
	return report.Errorf(report.Misuse, "collNet."+call, "collNet has no device here, so nothing can have been opened").
		Try("do not use collNet after devices answered 0")
}
