package plugin

import (
	"path/filepath"
	"strings"
	"sync"

	"weft/abi"
	"weft/collnet"
	"weft/internal/knob"
	"weft/profiler"
	"weft/transport"
	"weft/transport/rdma"
	"weft/transport/tcp"
)

// process is the plugin's state. There is one per loaded library; it survives
// dlclose, since a Go library is never unmapped.
type process struct {
	abi.NetDefaults

	host    host
	voices  *voices
	log     rdma.Logger // for what belongs to no context
	devices func(*knob.Values, rdma.Logger) ([]*tcp.Device, error)
	start   func(engineOptions) (engine, error)

	contexts contexts

	opening sync.Mutex
	state   struct {
		sync.RWMutex
		open  engine          // protected; nil before the first successful init
		knobs *knob.Values    // protected
		devs  []deviceStrings // protected
	}
}

// engineOptions are what the transport is opened with.
type engineOptions struct {
	Knobs   *knob.Values
	Log     rdma.Logger
	Devices []*tcp.Device
}

// deviceStrings is a device with the C strings that hosts keep pointers to.
type deviceStrings struct {
	*tcp.Device
	name, path *byte
}

func newProcess(h host) *process {
	v := &voices{host: h}
	return &process{
		host: h, voices: v, log: logger{voices: v},
		devices: func(k *knob.Values, log rdma.Logger) ([]*tcp.Device, error) {
			if err := transport.NeedFiles(8, log); err != nil {
				return nil, err
			}
			here, err := tcp.ThisHost()
			if err != nil {
				return nil, err
			}
			return here.Devices(k, log)
		},
		start:    openTransport,
		contexts: contexts{old: map[int]*netCtx{}},
	}
}

var theProcess = newProcess(cHost{})

func netImpl() abi.Net { return theProcess }

func collImpl() abi.CollNet { return collnet.Refuse{} }

func profImpl() abi.Profiler { return profiler.Refuse{} }

// current answers the transport once an init has succeeded.
func (p *process) current(call string) (engine, error) {
	p.state.RLock()
	defer p.state.RUnlock()
	if p.state.open == nil {
		return nil, rdma.Errorf(rdma.Misuse, call, "no init has succeeded yet")
	}
	return p.state.open, nil
}

// knobs answers the settings; before the first init, the defaults.
func (p *process) knobs() *knob.Values {
	p.state.RLock()
	defer p.state.RUnlock()
	if p.state.knobs == nil {
		return knob.Defaults()
	}
	return p.state.knobs
}

// open brings the process up at the first init that succeeds; a failed one
// leaves nothing behind, and the next tries again with what it finds then.
func (p *process) open(log rdma.Logger, table int) (engine, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if e, err := p.current("init"); err == nil {
		return e, nil
	}
	debug, _ := p.host.Getenv("NCCL_DEBUG")
	p.voices.trace.Store(strings.EqualFold(debug, "TRACE"))
	log.Info(rdma.Init, "%s, first used through table v%d", Build, table)
	knobs := knob.ParseEnv(p.host.Getenv, p.host.Environ)
	for _, line := range knobs.Problems() {
		log.Warn("%s", line)
	}
	for _, line := range knobs.Notes() {
		log.Info(rdma.Env, "%s", line)
	}
	tuneRuntime(p.host, log)
	devices, err := p.devices(knobs, log)
	if err != nil {
		return nil, err
	}
	log.Info(rdma.Init, "verbs is not used: %s; every device is served by TCP", whyNoVerbs("/sys/class/infiniband"))
	e, err := p.start(engineOptions{Knobs: knobs, Log: p.log, Devices: devices})
	if err != nil {
		return nil, err
	}
	devs := make([]deviceStrings, len(devices))
	for i, d := range devices {
		devs[i] = deviceStrings{Device: d, name: p.host.CString(d.Name)}
		if d.PCIPath != "" {
			devs[i].path = p.host.CString(d.PCIPath)
		}
	}
	p.state.Lock()
	defer p.state.Unlock()
	p.state.open, p.state.knobs, p.state.devs = e, knobs, devs
	return e, nil
}

// whyNoVerbs says what stands between this process and RDMA.
func whyNoVerbs(class string) string {
	found, err := filepath.Glob(filepath.Join(class, "*"))
	if err != nil || len(found) == 0 {
		return "this machine has no RDMA device"
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return "this version of weft has no verbs provider, although there is " + strings.Join(found, ", ")
}
