package plugin

import (
	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/version"
	"weft/transport/meter"
)

// metered begins the process's file of what its connections count.
func (p *process) metered(log report.Logger, k *knob.Values) {
	path, err := p.meter(meter.Config{Dir: p.profileDir(k), Build: version.String(), Log: p.log})
	if err != nil {
		log.Warn("there are no metrics, though WEFT_PROFILE=%s: %v", k.Text(knob.Profile), err)
		return
	}
	log.Info(report.Init, "connections are counted in %s (WEFT_PROFILE); weft metrics and weft top read it", path)
}

// tableNames is the profiler's first table whose init says which rank the process is.
const tableNames = 4

// rank has it said in that file.
func (p *process) rank(a *abi.ProfilerInitArgs) {
	if a.Table >= tableNames {
		meter.Rank(int(a.Rank), int(a.Nranks))
	}
}
