package plugin

import (
	"weft/abi"
	"weft/internal/report"
	"weft/transport"
	"weft/transport/rdma"
)

// Init opens the transport when it is the first that succeeds, and gives the
// host its context: before v11 one for all communicators of a table, from v11
// on one per call.
func (p *process) Init(a *abi.NetInitArgs) error {
	p.list.begins(ofNet)
	table := int(a.Table)
	if table < abi.NetFirst {
		return report.Errorf(report.Misuse, "init", "there is no table v%d", table)
	}
	if table >= tableContext {
		if err := p.initComm(a, table); err != nil {
			return err
		}
	} else if err := p.initTable(a, table); err != nil {
		return err
	}
	p.signals.giveStacks(p.log)
	return nil
}

func (p *process) initComm(a *abi.NetInitArgs, table int) error {
	*a.Ctx = 0
	c := &netCtx{table: table}
	c.voice = p.voices.add(a.LogFunction, table)
	c.log = logger{p.voices, c.voice}
	c.trafficClass = c.class(a.Config)
	c.netEvents.Store(a.ProfFunction)
	e, err := p.open(c.log, table)
	if err != nil {
		err = p.fail("init", c, err)
		p.voices.drop(c.voice)
		return err
	}
	c.net = e.Context(transport.ContextOptions{Table: table, CommID: a.CommId, TrafficClass: c.trafficClass, Log: c.log, Hints: func() rdma.Attr { return p.hints(c) }, NetEvents: c.netEvents.Load})
	value := p.contexts.add(c)
	if err := p.host.KeepHints(value); err != nil {
		err = p.fail("init", c, err)
		_ = p.Finalize(&abi.NetFinalizeArgs{Ctx: value})
		return err
	}
	*a.Ctx = value
	return nil
}

// initTable: hosts before v11 call init once per process, and again after they
// have unloaded the library, which did not go away. A second copy of NCCL in
// the process does the same. The first one's log function stays in use until
// its module is gone; a context is never taken from under its connections.
func (p *process) initTable(a *abi.NetInitArgs, table int) error {
	c := p.contexts.ofTable(table)
	if c != nil {
		if !p.voices.alive(c.voice) {
			p.voices.replace(c.voice, a.LogFunction)
			c.netEvents.Store(a.ProfFunction)
		} else if c.netEvents.Load() != a.ProfFunction {
			c.endEvents()
		}
		return nil
	}
	c = &netCtx{table: table, trafficClass: abi.NCCL_NET_TRAFFIC_CLASS_UNDEF}
	c.netEvents.Store(a.ProfFunction)
	c.voice = p.voices.add(a.LogFunction, table)
	c.log = logger{p.voices, c.voice}
	e, err := p.open(c.log, table)
	if err != nil {
		err = p.fail("init", c, err)
		p.voices.drop(c.voice)
		return err
	}
	c.net = e.Context(transport.ContextOptions{Table: table, TrafficClass: c.trafficClass, Log: c.log, NetEvents: func() uintptr { return p.host.StepEvents(c.netEvents.Load()) }})
	if !p.contexts.addOld(c) { // another thread's init of this table was faster
		p.voices.drop(c.voice)
		return c.net.Close()
	}
	return nil
}

// endEvents ends the net events of connections to come: two copies of NCCL in the
// process have one context, and what the one hands over with a request its own
// callback alone can read.
func (c *netCtx) endEvents() {
	if c.netEvents.Swap(0) != 0 {
		c.log.Info(report.Init, "net events are off: two copies of NCCL use table v%d in this process, and weft cannot tell which of them owns a connection", c.table)
	}
}

// fail says the error at once, while the log function of the host that must
// hear it is still known.
func (p *process) fail(call string, c *netCtx, err error) error {
	if err == nil {
		return nil
	}
	err = classified(call, err)
	report.Say(c.log, err)
	return c.fail(err)
}

// Finalize ends a context. NCCL calls it once, from whichever of the
// communicators that share it dies last.
func (p *process) Finalize(a *abi.NetFinalizeArgs) error {
	c, err := p.contexts.take("finalize", a.Ctx)
	if err != nil {
		return err
	}
	p.host.DropHints(a.Ctx)
	defer p.voices.drop(c.voice)
	return p.fail("finalize", c, c.net.Close())
}
