package plugin

import (
	"weft/collnet/choose"
	"weft/internal/report"
	"weft/tuner"
)

// newTuner makes the process's tuner; wanted reports whether the user wants collectives of weft, and joined are the contexts
// in which their ranks are joined.
func newTuner(h host, v *voices, wanted func() bool, joined *contexts) tuner.Tuner {
	return tuner.Tuner{
		Wanted: wanted,
		Expect: func(c tuner.Comm) (tuner.Expect, string) { return expect(c, joined.ofComm(c.ID)) },
		Keep:   h.KeepVetoes,
		Drop:   h.DropVetoes,
		Log:    func(function uintptr) (report.Logger, func()) { return v.hostLog(function) },
	}
}

// expect is what a communicator may expect of CollNet. What its ranks have measured counts where every one of them takes
// part in collNet: of several on a host not all do, and all must expect the same.
func expect(c tuner.Comm, joined *netCtx) (tuner.Expect, string) {
	f, how := choose.Fabric{N: c.Nodes, Path: tuner.Assumed, Copied: true}, "assumed"
	if joined != nil && c.Ranks == c.Nodes {
		if measured := joined.coll.Fabric(); measured != nil && measured.N == c.Nodes {
			f, how = *measured, "measured"
		}
	}
	return tuner.Model(c, f), tuner.Known(f.Path, how)
}
