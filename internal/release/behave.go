package release

import "weft/internal/host"

// What releases do, each the rule of a range of them.

// BlockingConnect: one thread connects all and then accepts; the comm is used
// without a look whether it is there.
func (r *Release) BlockingConnect() bool { return r.Code < 21200 }

// Grouped: receives of several channels that share a comm are posted together.
func (r *Release) Grouped() bool { return r.Code >= 21200 }

// NameFilter: NCCL_NET chooses among nets by name.
func (r *Release) NameFilter() bool { return r.Code >= 21100 }

// DeviceCheck: getProperties(0) must name a device type that is known.
func (r *Release) DeviceCheck() bool { return r.Code >= 21900 }

// Unloads: dlclose comes with the last user's end; up to 2.25 only where the comm
// that loaded the library was its only user ever.
func (r *Release) Unloads() bool { return r.Code >= 22200 && r.Code < 22600 || r.Code >= 22800 }

// ForgetsName: unloading wipes the plugin's name, so that the next communicator
// asks dlopen for the default name, whatever NCCL_NET_PLUGIN says.
func (r *Release) ForgetsName() bool { return r.Code >= 22800 && r.Code < 23000 }

// UnloadsOthers: the end of any communicator, also of one on NCCL's own networks,
// unloads each plugin that none uses, those whose init failed included.
func (r *Release) UnloadsOthers() bool { return r.Code >= 22800 && r.Code < 22807 }

// TrustsCollContext: a collNet context that is not NULL is finalized through the
// communicator's collNet, which is NULL where devices were 0.
func (r *Release) TrustsCollContext() bool { return r.Code >= 22800 && r.Code < 22807 }

// ForgetsInit: after unload and reload init is not called again.
func (r *Release) ForgetsInit() bool { return r.Code >= 22200 && r.Code < 22400 }

// Contexts: init and finalize once for each communicator.
func (r *Release) Contexts() bool { return r.Code >= 22800 }

// DevicesEachTime: devices follows every init, not only the first.
func (r *Release) DevicesEachTime() bool { return r.Code >= 22800 && r.Code < 22807 }

// Fuses: the ports of a card are made one device, once for the process's nets.
func (r *Release) Fuses() bool { return r.Code >= 22400 }

// RemembersDevices: how many devices there are, and were fused, is kept by the
// net's name, also when its library is unloaded.
func (r *Release) RemembersDevices() bool { return r.Code < 22700 }

// FinalizesFailedInit: finalize is called with what init left, though init failed.
func (r *Release) FinalizesFailedInit() bool { return r.Code >= 22800 && r.Code < 22907 }

// SharesContext: a split communicator with shared resources copies its parent's
// context and does not call the net's init; its profiler's it does.
func (r *Release) SharesContext() bool { return r.Code >= 22807 }

// Attributes: setNetAttr comes before connect and accept.
func (r *Release) Attributes() bool { return r.Code >= 22800 }

// SendsWhole: a sender whose buffer is registered offers all that is left of it,
// whatever the receive takes, and goes on behind what its test says was taken.
func (r *Release) SendsWhole() bool { return r.Code >= 22000 && r.Code < 22400 }

// OptionalReceives: irecv enters with *request = 1 where nobody waits.
func (r *Release) OptionalReceives() bool { return r.Code >= 22400 }

// clears: the adapter resets *request for tables that do not know of it.
func clears(table int) bool { return table < host.SinceVDevices }

// Profiles: the release loads profilers; InNet: it looks for one in the net library too.
func (r *Release) Profiles() bool { return len(r.Profiler) > 0 }

// ProfilerInNet: the net library is searched when no profiler library opens.
func (r *Release) ProfilerInNet() bool { return r.Code >= 22800 }

// ProfilerHandles: isend and irecv pass handles, never NULL while a profiler is loaded.
func (r *Release) ProfilerHandles() bool { return r.Code >= 22600 }

// MaxRegister is the largest registration that reaches a plugin of this table.
func (r *Release) MaxRegister(table int) int64 {
	if table < host.SinceWideRegMr {
		return 1<<31 - 1
	}
	return 1 << 62
}
