package plugin

import (
	"fmt"
	"strings"
	"sync"

	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
)

// chain is which further profilers the user wants (WEFT_PROFILER_CHAIN), looked
// up once. They are called in C: chain.c.
type chain struct {
	once  sync.Once
	names []string // of those that were opened, in the order in which they are told
	ended sync.Once
}

// chained opens the further profilers, for a host that uses the given table, and
// reports whether there are any.
func (p *process) chained(log report.Logger, table int, knobs func() *knob.Values) bool {
	p.chain.once.Do(func() {
		for library := range strings.SplitSeq(knobs().Text(knob.ProfilerChain), ",") {
			if library = strings.TrimSpace(library); library == "" {
				continue
			}
			name, version, err := p.host.OpenProfiler(library, table)
			if err != nil {
				log.Warn("WEFT_PROFILER_CHAIN: %s is not told of events: %v. A name is that of a file, or NAME of libnccl-profiler-NAME.so where the dynamic loader looks", library, err)
				continue
			}
			p.chain.names = append(p.chain.names, fmt.Sprintf("%s (%s)", name, library))
			log.Info(report.Init, "profiler %s (%s) is told of events as ncclProfiler_v%d; the host uses v%d (WEFT_PROFILER_CHAIN)", name, library, version, table)
		}
	})
	return len(p.chain.names) > 0
}

// beginChained makes a communicator known to them, and reports whether it could.
func (p *process) beginChained(n uint16, mask int32, a *abi.ProfilerInitArgs) bool {
	err := p.host.BeginChained(n, mask, a)
	if err == nil {
		return true
	}
	log, drop := p.hostLog(a.Logfn)
	defer drop()
	log.Warn("profiler.init: nothing is recorded of this communicator, and no profiler of WEFT_PROFILER_CHAIN is told of it: %v", err)
	return false
}

// chainRefused says that a further profiler did not want a communicator.
func (p *process) chainRefused(which int, result int32, logfn uintptr) {
	log, drop := p.hostLog(logfn)
	defer drop()
	log.Warn("profiler %s of WEFT_PROFILER_CHAIN: its init returned %d; it is told of nothing of this communicator", p.chain.names[which], result)
}

// chainEnded says, once, that ends of events were not told.
func (p *process) chainEnded() {
	if n := p.host.ChainForgotten(); n > 0 {
		p.chain.ended.Do(func() {
			p.log.Warn("profiler.finalize: %d events were dropped because half a million others were still open: the profilers of WEFT_PROFILER_CHAIN never see their ends. NCCL does not end proxy steps that it begins again: leave proxystep and netplugin out of WEFT_PROFILE_EVENTS and of the masks of those profilers", n)
		})
	}
}
