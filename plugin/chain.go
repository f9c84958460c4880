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
	host   host
	voices *voices

	once  sync.Once
	names []string // of those that were opened, in the order in which they are told
	ended sync.Once
}

// open loads the further profilers, for a host that uses the given table, and
// reports whether there are any.
func (c *chain) open(log report.Logger, table int, knobs func() *knob.Values) bool {
	c.once.Do(func() {
		for library := range strings.SplitSeq(knobs().Text(knob.ProfilerChain), ",") {
			if library = strings.TrimSpace(library); library == "" {
				continue
			}
			name, version, err := c.host.OpenProfiler(library, table)
			if err != nil {
				log.Warn("WEFT_PROFILER_CHAIN: %s is not told of events: %v. A name is that of a file, or NAME of libnccl-profiler-NAME.so where the dynamic loader looks", library, err)
				continue
			}
			c.names = append(c.names, fmt.Sprintf("%s (%s)", name, library))
			log.Info(report.Init, "profiler %s (%s) is told of events as ncclProfiler_v%d; the host uses v%d (WEFT_PROFILER_CHAIN)", name, library, version, table)
		}
	})
	return len(c.names) > 0
}

// begin makes a communicator known to them, and reports whether it could.
func (c *chain) begin(n uint16, mask int32, a *abi.ProfilerInitArgs) bool {
	err := c.host.BeginChained(n, mask, a)
	if err == nil {
		return true
	}
	log, drop := c.voices.hostLog(a.Logfn)
	defer drop()
	log.Warn("profiler.init: nothing is recorded of this communicator, and no profiler of WEFT_PROFILER_CHAIN is told of it: %v", err)
	return false
}

// refused says that a further profiler did not want a communicator.
func (c *chain) refused(which int, result int32, logfn uintptr) {
	log, drop := c.voices.hostLog(logfn)
	defer drop()
	log.Warn("profiler %s of WEFT_PROFILER_CHAIN: its init returned %d; it gets no events of this communicator", c.names[which], result)
}

// finalized says, once, that ends of events were not told.
func (c *chain) finalized() {
	if n := c.host.ChainForgotten(); n > 0 {
		c.ended.Do(func() {
			logger{voices: c.voices}.Warn("profiler.finalize: %d events were dropped because half a million others were still open: the profilers of WEFT_PROFILER_CHAIN never see their ends. NCCL does not end proxy steps that it begins again: leave proxystep and netplugin out of WEFT_PROFILE_EVENTS and of the masks of those profilers", n)
		})
	}
}
