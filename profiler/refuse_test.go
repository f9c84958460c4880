package profiler

import (
	"testing"

	"weft/abi"
)

func TestNothingIsAskedFor(t *testing.T) {
	context, handle, mask := uintptr(5), uintptr(6), int32(-1)
	var p abi.Profiler = Refuse{}
	for _, err := range []error{
		p.Init(&abi.ProfilerInitArgs{Context: &context, EActivationMask: &mask}),
		p.StartEvent(&abi.ProfilerStartEventArgs{Context: context, EHandle: &handle}),
		p.StopEvent(&abi.ProfilerStopEventArgs{EHandle: 99}),
		p.RecordEventState(&abi.ProfilerRecordEventStateArgs{EHandle: 99}),
		p.Finalize(&abi.ProfilerFinalizeArgs{Context: context}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if context != 0 || handle != 0 || mask != 0 {
		t.Errorf("context %d, handle %d, mask %d", context, handle, mask)
	}
}
