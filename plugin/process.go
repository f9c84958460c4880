package plugin

import (
	"errors"
	"strings"
	"sync"

	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/version"
	"weft/profiler"
	"weft/transport"
	"weft/transport/device"
	"weft/transport/meter"
	"weft/transport/record"
	"weft/transport/task"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/transport/verbs/machine"
	"weft/tuner"
)

// process is the plugin's state. There is one per loaded library; it survives
// dlclose, since a Go library is never unmapped.
type process struct {
	abi.NetDefaults

	host    host
	voices  *voices
	log     report.Logger // for what belongs to no context
	devices func(*knob.Values, report.Logger) ([]*tcp.Device, error)
	verbs   func(*knob.Values, report.Logger) (*verbs.Provider, error)
	cards   func() []string // RDMA devices that the kernel has
	start   func(transport.Config) (engine, error)

	contexts     contexts
	collContexts contexts
	list         deviceList
	profile      profile
	profiler     profiler.Profiler
	tuner        tuner.Tuner
	signals      signals

	opening sync.Mutex
	state   struct {
		sync.RWMutex
		open  engine       // protected; nil before the first successful init
		knobs *knob.Values // protected
	}
}

func newProcess(h host) *process {
	v := &voices{host: h}
	p := &process{
		host: h, voices: v, log: logger{voices: v},
		devices: func(k *knob.Values, log report.Logger) ([]*tcp.Device, error) {
			if err := task.NeedFiles(8, log); err != nil {
				return nil, err
			}
			here, err := tcp.ThisHost()
			if err != nil {
				return nil, err
			}
			return here.Devices(k, log)
		},
		verbs: func(k *knob.Values, log report.Logger) (*verbs.Provider, error) {
			return verbs.Open(verbs.Config{Knobs: k, Log: log})
		},
		cards:    machine.This().Cards,
		start:    openTransport,
		contexts: contexts{old: map[int]*netCtx{}}, collContexts: contexts{old: map[int]*netCtx{}},
		list:    deviceList{host: h, log: logger{voices: v}, strings: map[string]*byte{}},
		profile: profile{host: h, voices: v, record: record.Open, meter: meter.Open, chain: chain{host: h, voices: v}},
		signals: signals{host: h},
	}
	p.profiler.Wanted, p.profiler.Begin = p.profile.wanted, p.profile.chain.begin
	p.tuner = newTuner(h, v, p.collectives, &p.collContexts)
	return p
}

// current returns the transport once an init has succeeded.
func (p *process) current(call string) (engine, error) {
	p.state.RLock()
	defer p.state.RUnlock()
	if p.state.open == nil {
		return nil, report.Errorf(report.Misuse, call, "no init has succeeded yet")
	}
	return p.state.open, nil
}

// knobs returns the settings; before the first init, the defaults.
func (p *process) knobs() *knob.Values {
	p.state.RLock()
	defer p.state.RUnlock()
	if p.state.knobs == nil {
		return knob.Defaults()
	}
	return p.state.knobs
}

// collectives reports whether the user wants collectives of weft. Before the first init the environment alone tells.
func (p *process) collectives() bool {
	p.state.RLock()
	k := p.state.knobs
	p.state.RUnlock()
	if k == nil {
		k = knob.ParseEnv(p.host.Getenv, p.host.Environ)
	}
	return k.Int(knob.CollNet) != 0
}

// open brings the process up at the first init that succeeds; a failed one
// leaves nothing behind, and the next tries again with what it finds then.
func (p *process) open(log report.Logger, table int) (engine, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if e, err := p.current("init"); err == nil {
		return e, nil
	}
	knobs := knob.ParseEnv(p.host.Getenv, p.host.Environ)
	p.voices.force(knobs.Text(knob.LogLevels))
	log.Info(report.Init, "%s, first used through table v%d", version.String(), table)
	for _, line := range knobs.Problems() {
		log.Warn("%s", line)
	}
	for _, line := range knobs.Notes() {
		log.Info(report.Env, "%s", line)
	}
	tuneRuntime(p.host, log)
	p.profile.begin(log, func() *knob.Values { return knobs })
	interfaces, err := p.devices(knobs, log)
	if err != nil {
		return nil, err
	}
	provider, noVerbs := p.rdma(knobs, log)
	devices := device.Found(interfaces, provider)
	e, err := p.start(transport.Config{Knobs: knobs, Log: p.log, Devices: devices, Interfaces: interfaces, Verbs: provider, NoVerbs: noVerbs, Stall: p.profile.stall})
	if err != nil {
		if provider != nil {
			provider.Close()
		}
		return nil, err
	}
	p.list.found(devices)
	p.state.Lock()
	defer p.state.Unlock()
	p.state.open, p.state.knobs = e, knobs
	return e, nil
}

// rdma opens libibverbs once, with the log of the process, since its watchers
// outlive the context of this init; nil, one line and the reason when there is
// nothing for it. The line is a warning where the user counts on RDMA.
func (p *process) rdma(knobs *knob.Values, log report.Logger) (*verbs.Provider, string) {
	provider, err := p.verbs(knobs, p.log)
	if err == nil {
		return provider, ""
	}
	expected := ""
	switch hca, cards := knobs.Text(knob.IBHCA), p.cards(); {
	case knobs.Int(knob.IBDisable) != 0: // as the user wishes
	case hca != "":
		expected = "though NCCL_IB_HCA=" + hca + " names devices"
	case len(cards) > 0:
		expected = "though this machine has " + strings.Join(cards, ", ")
	}
	switch {
	case !errors.Is(err, verbs.ErrNone):
		report.Say(log, err)
		log.Info(report.Init, "verbs is not used because of this error: %v; every device is served by TCP", err)
	case expected != "":
		log.Warn("verbs is not used, %s: %v; every device is served by TCP; NCCL_IB_DISABLE=1 says that this is meant", expected, err)
	default:
		log.Info(report.Init, "verbs is not used: %v; every device is served by TCP", err)
	}
	return nil, err.Error()
}
