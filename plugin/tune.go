package plugin

import (
	"weft/abi"
	"weft/collnet/choose"
	"weft/internal/report"
	"weft/tuner"
)

func tuneImpl() abi.Tuner { return &theProcess.tuner }

// newTuner makes the process's tuner.
func (p *process) newTuner() tuner.Tuner {
	return tuner.Tuner{
		Wanted: collective{process: p}.collectives,
		Expect: p.expect,
		Keep:   p.host.KeepVetoes,
		Log:    func(function uintptr) (report.Logger, func()) { return p.hostLog(function) },
	}
}

// expect is what a communicator may expect of CollNet. What this process alone has
// measured does not count.
func (p *process) expect(c tuner.Comm) (tuner.Expect, string) {
	return tuner.Model(c, choose.Fabric{N: c.Nodes, Path: tuner.Assumed}), tuner.Known(tuner.Assumed, "assumed")
}
