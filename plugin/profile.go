package plugin

import (
	"strings"
	"sync"

	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/version"
	"weft/profiler"
	"weft/transport/meter"
	"weft/transport/record"
)

// profile is what the user wants to be recorded, looked up once.
type profile struct {
	host   host
	voices *voices
	record func(record.Config) (path string, err error)
	meter  func(meter.Config) (path string, err error)
	chain  chain

	once   sync.Once
	events int32     // that the host is asked for
	stall  bool      // the log tells of what stands still
	hangs  sync.Once // it was said that a release cannot have a profiler
}

// Of the profiler's tables.
const (
	tableHangs  = 3 // NCCL 2.26 uses it, and no other release
	tablePhases = 7 // event bit 15 is a kernel's phase; RCCL's v6 means its proxy's diagnosis
)

// dir is where files of records go.
func (p *profile) dir(k *knob.Values) string {
	if dir := k.Text(knob.ProfileDir); dir != "" {
		return dir
	}
	if dir, _ := p.host.Getenv("TMPDIR"); dir != "" {
		return dir
	}
	return "/tmp"
}

// begin begins the process's file where the user wants that, and says what came
// of it. Both the first init of a network and that of a profiler come here: the
// process may use one of the two alone.
func (p *profile) begin(log report.Logger, knobs func() *knob.Values) {
	p.once.Do(func() {
		k, trace, metrics := knobs(), false, false
		modes := k.Text(knob.Profile)
		for mode := range strings.SplitSeq(modes, ",") {
			switch strings.TrimSpace(mode) {
			case "trace":
				trace = true
			case "metrics":
				metrics = true
			case "stall":
				p.stall = true
				log.Info(report.Init, "stalls of %v or more are logged (WEFT_PROFILE=stall)", k.Seconds(knob.StallSeconds))
			case "", "0", "off":
			default:
				log.Warn("WEFT_PROFILE=%s: %q is not known; there are trace, metrics and stall", modes, mode)
			}
		}
		if metrics {
			metered(p.meter, meter.Config{Dir: p.dir(k), Build: version.String(), Log: logger{voices: p.voices}}, log, modes)
		}
		if !trace {
			return
		}
		mask, err := profiler.Mask(k.Text(knob.ProfileEvents))
		if err != nil {
			log.Warn("WEFT_PROFILE_EVENTS=%s: %v; every event but proxyctrl is recorded", k.Text(knob.ProfileEvents), err)
			mask, _ = profiler.Mask("")
		}
		path, err := p.record(record.Config{Dir: p.dir(k), Bytes: int64(k.Int(knob.ProfileSize)) << 20, Build: version.String(), Log: logger{voices: p.voices}})
		if err != nil {
			log.Warn("nothing is recorded, though WEFT_PROFILE=%s: %v", modes, err)
			return
		}
		p.events = mask
		log.Info(report.Init, "what happens is recorded in %s (WEFT_PROFILE); weft trace reads it", path)
	})
}

// wanted are the events of a communicator's init, which may be the first that
// this process hears of a host: its log is used as long as init lasts.
func (p *profile) wanted(a *abi.ProfilerInitArgs) (mask int32, chained bool) {
	log, drop := p.voices.hostLog(a.Logfn)
	defer drop()
	var k *knob.Values
	knobs := func() *knob.Values {
		if k == nil {
			k = knob.ParseEnv(p.host.Getenv, p.host.Environ)
		}
		return k
	}
	p.begin(log, func() *knob.Values {
		for _, line := range knobs().Problems() { // else the network's init has said them
			log.Warn("%s", line)
		}
		return knobs()
	})
	mask = p.events
	rank(a)
	if a.Table == tableHangs {
		if mask != 0 || knobs().Text(knob.ProfilerChain) != "" {
			p.hangs.Do(func() {
				log.Warn("NCCL 2.26 stands still in ncclCommDestroy when any profiler wants events: it is asked for none. Only the network's messages are recorded, and further profilers hear nothing. 2.27 and later do not stand still")
			})
		}
		return 0, false
	}
	return mask & hostsEvents(a.Table), p.chain.open(log, int(a.Table), knobs)
}

// hostsEvents are those that a host of a table may be asked for.
func hostsEvents(table int32) int32 {
	if table < tablePhases {
		return ^int32(abi.ProfileKernelPhase)
	}
	return ^0
}
