package plugin

import (
	"weft/abi"
	"weft/internal/report"
	"weft/transport/meter"
)

// metered begins the process's file of what its connections count, as the user's modes want it.
func metered(open func(meter.Config) (path string, err error), c meter.Config, log report.Logger, modes string) {
	path, err := open(c)
	if err != nil {
		log.Warn("there are no metrics, though WEFT_PROFILE=%s: %v", modes, err)
		return
	}
	log.Info(report.Init, "connections are counted in %s (WEFT_PROFILE); weft metrics and weft top read it", path)
}

// tableNames is the profiler's first table whose init says which rank the process is.
const tableNames = 4

// rank has it said in that file.
func rank(a *abi.ProfilerInitArgs) {
	if a.Table >= tableNames {
		meter.Rank(int(a.Rank), int(a.Nranks))
	}
}
