package profiler

import (
	"weft/abi"
)

// Refuse is a profiler that wants no events.
//
// Its init succeeds with an empty activation mask and a NULL context. A failed
// init would say the same louder and worse:
//   - 2.23 to 2.27 warn about it and set their profiler to NULL while other
//     communicators' threads may be using it.
//   - 2.28 and 2.29 log it and go on calling this profiler with a context that
//     was never set.
//   - 2.30 and 2.31 drop a reference on failure and again at finalize, so that the
//     count is wrong ever after.
//
// With the mask empty no release starts an event, and from 2.28 on finalize is
// not called for a NULL context.
type Refuse struct{ abi.ProfilerDefaults }

func (Refuse) Init(a *abi.ProfilerInitArgs) error {
	*a.Context, *a.EActivationMask = 0, 0
	return nil
}

// StartEvent gives no handle: what comes after a start then has nothing to name.
func (Refuse) StartEvent(a *abi.ProfilerStartEventArgs) error {
	*a.EHandle = 0
	return nil
}

func (Refuse) StopEvent(*abi.ProfilerStopEventArgs) error { return nil }

func (Refuse) RecordEventState(*abi.ProfilerRecordEventStateArgs) error { return nil }

func (Refuse) Finalize(*abi.ProfilerFinalizeArgs) error { return nil }
