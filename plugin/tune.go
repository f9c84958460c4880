package plugin

import (
	"weft/collnet/choose"
	"weft/internal/report"
	"weft/tuner"
)

// newTuner makes the process's tuner; wanted reports whether the user wants collectives of weft.
func newTuner(h host, v *voices, wanted func() bool) tuner.Tuner {
	return tuner.Tuner{
		Wanted: wanted,
		Expect: expect,
		Keep:   h.KeepVetoes,
		Log:    func(function uintptr) (report.Logger, func()) { return v.hostLog(function) },
	}
}

// expect is what a communicator may expect of CollNet. What this process alone has
// measured does not count.
func expect(c tuner.Comm) (tuner.Expect, string) {
	return tuner.Model(c, choose.Fabric{N: c.Nodes, Path: tuner.Assumed}), tuner.Known(tuner.Assumed, "assumed")
}
