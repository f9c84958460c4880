package release

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/internal/host"
)

// ErrInternal means that the release would fall back on its own networks.
var ErrInternal = errors.New("no external net plugin is usable: NCCL goes on with its own networks")

// Options say how a process is set up.
type Options struct {
	Host      string        // the weft-host program
	Name      string        // of the process, for messages
	Env       []string      // LD_LIBRARY_PATH and the plugin's own variables
	NetPlugin *string       // NCCL_NET_PLUGIN
	Profiler  *string       // NCCL_PROFILER_PLUGIN
	Tuner     *string       // NCCL_TUNER_PLUGIN
	NetName   string        // NCCL_NET
	Patience  time.Duration // of each call; default 20 s
}

// Process is one process with that release in it.
type Process struct {
	R     *Release
	H     *host.Host
	o     Options
	nets  []*plugin // nil until the first comm
	prof  *profiler
	tuner *tuner
	// Tried are the names given to dlopen, and what became of them.
	Tried []string
}

type state int

const (
	ready    state = iota // may be loaded
	loaded                // may be initialised
	enabled               // in use
	disabled              // for the rest of the process
)

// plugin is one external net plugin of the process.
type plugin struct {
	names   []string
	state   state
	lib     *host.Lib // nil while it is not open
	net     *host.Net
	coll    *host.Table
	table   int
	nics    nics
	refs    int   // comms that use it
	inits   int   // comms that an adapter of an older table counts
	outcome state // of its init: enabled or disabled, once it was called
}

// Start starts a process; nothing is loaded before the first communicator.
func Start(r *Release, o Options) (*Process, error) {
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	env := append([]string{}, o.Env...)
	for name, v := range map[string]*string{"NCCL_NET_PLUGIN": o.NetPlugin, "NCCL_PROFILER_PLUGIN": o.Profiler, "NCCL_TUNER_PLUGIN": o.Tuner} {
		if v != nil {
			env = append(env, name+"="+*v)
		}
	}
	if o.NetName != "" {
		env = append(env, "NCCL_NET="+o.NetName)
	}
	h, err := host.Start(host.Options{Bin: o.Host, Name: o.Name, Env: env, Deadline: o.Patience})
	if err != nil {
		return nil, err
	}
	return &Process{R: r, H: h, o: o}, nil
}

// Close ends the process.
func (p *Process) Close() error { return p.H.Close() }

// Comm is a communicator's side in one process.
type Comm struct {
	P     *Process
	ID    uint64
	Net   *host.Net
	Props []*host.Props
	plug  *plugin
	// loaded is the plugin whose library it opened, if any.
	loaded *plugin
	// collCtx is what collNet's init gave.
	collCtx host.Ptr
	prof    host.Ptr
	tuner   host.Ptr
	users   *int // further comms that share the context
}

// Init is what ncclCommInitRank does with plugins. With ErrInternal there is a
// communicator too: one without a plugin, which can only be destroyed.
func (p *Process) Init(id uint64) (*Comm, error) {
	if p.nets == nil {
		p.nets = []*plugin{}
		for _, names := range p.R.NetNames(p.o.NetPlugin) {
			p.nets = append(p.nets, &plugin{names: names})
		}
	}
	var opened *plugin
	for _, pl := range p.nets {
		if pl.state == ready {
			if err := p.load(pl); err != nil {
				return nil, err
			}
			opened = pl
		}
		c := &Comm{P: p, ID: id, plug: pl, loaded: opened, users: new(int)}
		if pl.state < loaded || pl.state == disabled || !p.named(pl) {
			continue
		}
		if err := c.init(); err != nil {
			return nil, err
		}
		if pl.state != enabled {
			continue
		}
		if err := p.checkDevice(c); err != nil {
			continue
		}
		for _, other := range p.nets {
			if other != pl && p.R.Code >= 22700 {
				other.state = disabled
			}
		}
		pl.refs++
		if err := c.profile(); err != nil {
			return nil, err
		}
		if err := c.topology(); err != nil {
			return c, err
		}
		return c, c.tune()
	}
	return &Comm{P: p, ID: id, loaded: opened, users: new(int)}, ErrInternal
}

func (p *Process) named(pl *plugin) bool {
	return p.o.NetName == "" || !p.R.NameFilter() || strings.EqualFold(p.o.NetName, pl.net.Name)
}

// open tries names in order.
func (p *Process) open(names []string) *host.Lib {
	for _, n := range names {
		lib, err := p.H.Load(n)
		if err == nil {
			p.Tried = append(p.Tried, n)
			return lib
		}
		p.Tried = append(p.Tried, n+": "+err.Error())
	}
	return nil
}

// load opens a library and binds the newest tables that the release knows.
func (p *Process) load(pl *plugin) error {
	pl.state = disabled
	if pl.lib = p.open(pl.names); pl.lib == nil {
		return p.H.Err()
	}
	for _, v := range p.R.Net {
		addr, err := pl.lib.Sym(host.FamilyNet.Symbol(v))
		if err != nil {
			return err
		}
		if addr == 0 {
			continue
		}
		if pl.net, err = pl.lib.BindNet(v); err != nil {
			return err
		}
		pl.table = v
		break
	}
	if pl.net == nil {
		return pl.close()
	}
	if p.R.BlockingConnect() {
		pl.net.Setup = "main"
	}
	pl.state = loaded
	for _, v := range p.R.CollNet {
		if addr, err := pl.lib.Sym(host.FamilyColl.Symbol(v)); err != nil {
			return err
		} else if addr != 0 {
			pl.coll, err = pl.lib.Bind(host.FamilyColl, v, "")
			if err != nil {
				return err
			}
			break
		}
	}
	if p.R.ForgetsInit() && pl.outcome != ready {
		pl.state = pl.outcome
	}
	return nil
}

// init calls init as often as the release does, and devices.
func (c *Comm) init() error {
	pl, r := c.plug, c.P.R
	first := pl.state == loaded
	each := r.Contexts() && pl.table >= host.SinceContexts
	adapter := r.Contexts() && pl.table < host.SinceContexts && pl.inits == 0
	n := *pl.net
	c.Net = &n
	if first || each || adapter {
		err := c.Net.Init("commId", c.ID, "prof", r.ProfilerHandles())
		if host.Code(err) == host.HostError {
			return err
		}
		if err != nil {
			return c.drop(err)
		}
	}
	pl.inits++
	if first || r.DevicesEachTime() {
		n, err := c.Net.Devices()
		if host.Code(err) == host.HostError {
			return err
		}
		if err != nil || n <= 0 {
			return c.drop(err)
		}
		if !pl.nics.known || !r.RemembersDevices() {
			pl.nics = nics{known: true, real: n, fused: -1}
		}
	}
	pl.state, pl.outcome = enabled, enabled
	return c.collnet(first)
}

// drop is what happens to a plugin whose init or devices failed.
func (c *Comm) drop(cause error) error {
	pl, r := c.plug, c.P.R
	pl.state, pl.outcome = disabled, disabled
	c.P.Tried = append(c.P.Tried, fmt.Sprintf("%s: %v", pl.net.Name, cause))
	if pl.table >= host.SinceContexts && (cause == nil || r.FinalizesFailedInit()) {
		if err := c.Net.Finalize(); host.Code(err) == host.HostError {
			return err
		}
	}
	if r.BlockingConnect() {
		return pl.close()
	}
	return nil
}

// collnet initialises collNet; when that fails, or there are no devices, NCCL does without.
func (c *Comm) collnet(first bool) error {
	pl := c.plug
	if pl.coll == nil || !first && !(c.P.R.Contexts() && pl.coll.Version >= host.SinceContexts) {
		return nil
	}
	r, err := pl.coll.Call("main", "init", host.Args{"commId", c.ID})
	if host.Code(err) == host.HostError {
		return err
	}
	if err == nil && first {
		var d *host.Reply
		if d, err = pl.coll.Call("main", "devices", nil); host.Code(err) == host.HostError {
			return err
		}
		if d.Int("n") > 0 {
			return fmt.Errorf("collNet has %d devices; this emulation goes no further", d.Int("n"))
		}
	}
	c.collCtx = r.Ptr("ctx")
	pl.coll = nil // disabled, for want of devices: no communicator has a collNet
	return nil
}

func (p *Process) checkDevice(c *Comm) error {
	if !p.R.DeviceCheck() {
		return nil
	}
	x, err := c.Net.Props(0)
	if err != nil {
		return err
	}
	if c.plug.table >= host.SinceDeviceCode && x.NetDeviceType != 0 && x.NetDeviceType != 1 {
		return fmt.Errorf("unknown device type %d", x.NetDeviceType)
	}
	return nil
}

// Split is ncclCommSplit with shared resources: the child has the parent's context.
func (c *Comm) Split(id uint64) (*Comm, error) {
	if !c.P.R.SharesContext() {
		return c.P.Init(id)
	}
	child := *c
	child.ID = id
	*c.users++
	if err := child.profile(); err != nil {
		return &child, err
	}
	return &child, child.tune()
}

// Destroy is what ncclCommDestroy does with plugins once all connections are closed.
func (c *Comm) Destroy() error {
	if c.plug != nil {
		if err := c.untune(); err != nil {
			return err
		}
		if err := c.unprofile(); err != nil {
			return err
		}
		if *c.users--; *c.users >= 0 {
			return nil
		}
		if err := c.finalize(); err != nil {
			return err
		}
	}
	for _, pl := range c.P.nets {
		if !c.unloads(pl) {
			continue
		}
		if err := pl.close(); err != nil {
			return err
		}
		pl.state = ready
		if c.P.R.ForgetsName() {
			pl.names = c.P.R.NetNames(nil)[0]
		}
	}
	return nil
}

// finalize ends the communicator's use of its plugin.
func (c *Comm) finalize() error {
	pl, r := c.plug, c.P.R
	pl.inits--
	if r.Contexts() && pl.table >= host.SinceContexts {
		if err := c.Net.Finalize(); err != nil {
			return err
		}
	}
	if c.collCtx != 0 && r.TrustsCollContext() {
		return fmt.Errorf("collNet gave context %d and has no device: %v dies, as it calls finalize(%d) through a pointer that is NULL", c.collCtx, r, c.collCtx)
	}
	if r.Contexts() || c.loaded == pl {
		pl.refs--
	}
	return nil
}

// unloads tells whether the end of the communicator closes that plugin's library.
func (c *Comm) unloads(pl *plugin) bool {
	r := c.P.R
	if pl.lib == nil || pl.refs > 0 || !r.Unloads() {
		return false
	}
	if !r.Contexts() {
		return pl == c.loaded
	}
	return pl == c.plug || r.UnloadsOthers()
}

// close closes the library.
func (pl *plugin) close() error {
	err := pl.lib.Unload()
	pl.lib, pl.net, pl.coll = nil, nil, nil
	return err
}
