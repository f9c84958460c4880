package verbs

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// ErrNone is wrapped by errors of Open that are no fault: there is no library,
// or no device to use. The transport says them at INFO and uses TCP.
var ErrNone = errors.New("no RDMA here")

// Config is what a provider needs from its process.
type Config struct {
	Knobs *knob.Values
	Log   report.Logger
	Host  *machine.Machine // nil: this machine

	lib *ibv.Calls // tests bring their own library
}

// Provider is libibverbs with the devices that are in use.
type Provider struct {
	lib     *ibv.Calls
	library string // its name
	knobs   *knob.Values
	log     report.Logger
	host    *machine.Machine
	rules   gid.Rules

	adapters []*adapter
	devices  []*Device
	gdr      machine.GDR

	mlx5Tried bool        // loading libmlx5
	spare     func() bool // gives up what nobody needs; nil: nothing

	closing sync.Once
}

// Open loads the library, opens the devices that the knobs let through and
// chooses their GIDs. An error that wraps ErrNone is one sentence for the log.
func Open(cfg Config) (*Provider, error) {
	if cfg.Knobs == nil {
		cfg.Knobs = knob.Defaults()
	}
	if cfg.Log == nil {
		cfg.Log = report.Discard{}
	}
	if cfg.Host == nil {
		cfg.Host = machine.This()
	}
	if cfg.Knobs.Int(knob.IBDisable) != 0 {
		return nil, none("NCCL_IB_DISABLE=%d", cfg.Knobs.Int(knob.IBDisable))
	}
	p := &Provider{lib: cfg.lib, library: "a test's library", knobs: cfg.Knobs, log: cfg.Log, host: cfg.Host}
	if p.mlx5Tried = p.lib != nil; p.lib == nil { // a test's table has libmlx5's functions too
		if err := p.load(); err != nil {
			return nil, err
		}
	}
	var problems []string
	p.rules, problems = gid.RulesOf(p.knobs)
	for _, line := range problems {
		p.log.Warn("%s", line)
	}
	if err := p.discover(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func none(format string, a ...any) error {
	return report.Errorf(report.Unsupported, "verbs", format+": %w", append(a, ErrNone)...)
}

// load tries the user's library first. ibv_fork_init comes before anything
// that pins memory, so that a forked child keeps its copy of it.
func (p *Provider) load() error {
	names := []string{"libibverbs.so.1", "libibverbs.so"}
	user := p.knobs.Text(knob.IBVerbsLib)
	if user != "" {
		names = append([]string{user}, names...)
	}
	var whys []string
	for _, name := range names {
		lib, err := ibv.Load(name)
		if err == nil {
			p.lib, p.library = lib, name
			break
		}
		whys = append(whys, strings.TrimPrefix(fmt.Sprintf("%s: %v", name, err), name+": "+name+": "))
		if name == user {
			p.log.Warn("%s=%s cannot be used: %v", p.knobs.Name(knob.IBVerbsLib), name, err)
		}
	}
	if p.lib == nil {
		return report.Errorf(report.Unsupported, "verbs", "libibverbs cannot be loaded (%s): %w", strings.Join(whys, "; "), ErrNone).
			Try("install libibverbs (rdma-core) and its providers in this system or container image, or name it in NCCL_IBVERBS_LIB")
	}
	if errno := p.lib.ForkInit(); errno != 0 {
		p.log.Info(report.Init, "%v; a process that forks while RDMA runs may lose pages to its child", fail("ibv_fork_init", "", errno, "%s", p.library))
	}
	return nil
}

// Devices are the usable ports in NCCL's order; at least one.
func (p *Provider) Devices() []*Device { return p.devices }

// Close ends the readers of events and the trials of cards that failed, and closes each
// device as soon as nothing is left on it; nothing new can be made on one. The
// library never calls it: it keeps devices for its process.
func (p *Provider) Close() {
	p.closing.Do(func() {
		for _, a := range p.adapters {
			a.close()
		}
	})
}
