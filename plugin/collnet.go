package plugin

import (
	"cmp"

	"weft/abi"
	"weft/collnet"
	"weft/collnet/kernels"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport"
	"weft/transport/rdma"
)

// collective are the functions of the collNet tables, in the order in which a host calls them.
type collective struct {
	abi.CollNetDefaults
	*process
}

// Init gives the host a context of the net core's, where the user wants collectives; else it offers nothing, and says
// nothing.
func (p collective) Init(a *abi.CollNetInitArgs) error {
	if !p.collectives() {
		return collnet.Decline{}.Init(a)
	}
	p.list.begins(ofCollNet)
	table := int(a.Table)
	c := &netCtx{table: table, commID: a.CommId, trafficClass: abi.NCCL_NET_TRAFFIC_CLASS_UNDEF}
	if table >= tableContext {
		*a.Ctx = 0
	} else if p.hasOld(table, a.LogFunction) {
		return nil
	}
	c.voice = p.voices.add(a.LogFunction, table)
	c.log = logger{p.voices, c.voice}
	e, err := p.open(c.log, table)
	if err != nil {
		err = p.fail("collNet.init", c, err)
		p.voices.drop(c.voice)
		return err
	}
	c.net = e.Context(transport.ContextOptions{Table: table, CommID: a.CommId, TrafficClass: c.trafficClass, Log: aside{c.log}})
	k := p.knobs()
	c.coll = collnet.NewContext(collnet.Options{Net: collNet{c.net}, Requests: p.host.Requests(), Table: table, Log: c.log, Code: Code,
		Timeout: k.Seconds(knob.ConnectTimeout), Chunk: int(k.Int(knob.CollNetChunk)) << 10, Name: p.list.name})
	if table >= tableContext {
		*a.Ctx = p.collContexts.add(c)
	} else if !p.collContexts.addOld(c) { // another thread's init of this table was faster
		p.voices.drop(c.voice)
		return c.net.Close()
	}
	n := p.list.real()
	c.log.Info(report.Init, "collNet offers %d device%s (WEFT_COLLNET=1); all ranks must have as many: NCCL from 2.30 on ends with \"Detected mixed local CollNet device counts across ranks\" otherwise",
		n, report.Plural(n))
	return nil
}

// hasOld reports whether the context of an old table is there; it speaks through the host's function then.
func (p collective) hasOld(table int, log uintptr) bool {
	c := p.collContexts.ofTable(table)
	if c != nil && !p.voices.alive(c.voice) {
		p.voices.replace(c.voice, log)
	}
	return c != nil
}

func (p collective) Devices(a *abi.CollNetDevicesArgs) error {
	*a.Ndev = 0
	if !p.collectives() {
		return nil
	}
	return p.tellDevices(a.Ndev, ofCollNet)
}

// GetProperties are those of the net's device, which takes no GPU memory here: the CPU reduces.
func (p collective) GetProperties(a *abi.CollNetGetPropertiesArgs) error {
	if !p.collectives() {
		return collnet.Decline{}.GetProperties(a)
	}
	if err := p.process.GetProperties(&abi.NetGetPropertiesArgs{Dev: a.Dev, Props: a.Props}); err != nil {
		return err
	}
	a.Props.PtrSupport = int32(rdma.MemHost)
	a.Props.ForceFlush = 0
	return nil
}

// MakeVDevice makes, or finds, the device that the net makes of these.
func (p collective) MakeVDevice(a *abi.CollNetMakeVDeviceArgs) error {
	if !p.collectives() {
		return collnet.Decline{}.MakeVDevice(a)
	}
	return p.makeVDevice(&abi.NetMakeVDeviceArgs{Asked: a.Asked, D: a.D, Props: a.Props}, ofCollNet)
}

func (p collective) Listen(a *abi.CollNetListenArgs) error {
	*a.ListenComm = 0
	c, err := p.collContexts.find("collNet.listen", a.Ctx)
	if err != nil {
		return err
	}
	l, err := c.coll.Listen(int(a.Dev), handleBytes(a.Handle, c.table))
	if err != nil {
		return c.fail(err)
	}
	*a.ListenComm = l.Handle()
	return nil
}

// Connect blocks until all ranks are joined: NCCL's call does.
func (p collective) Connect(a *abi.CollNetConnectArgs) error {
	*a.CollComm = 0
	l, err := collnet.ListenerOf(a.ListenComm)
	if err != nil {
		return err
	}
	if a.Nranks < 1 || a.Rank < 0 || a.Rank >= a.Nranks {
		return of(l, report.Errorf(report.Misuse, "collNet.connect", "rank %d of %d", a.Rank, a.Nranks))
	}
	handles, err := handlesOf(a.Handles, int(a.Nranks), l.Table())
	if err != nil {
		return of(l, err)
	}
	c, err := l.Connect(handles, int(a.Rank))
	if err != nil {
		return of(l, err)
	}
	*a.CollComm = c.Handle()
	return nil
}

// ReduceSupport says the truth.
func (p collective) ReduceSupport(a *abi.CollNetReduceSupportArgs) error {
	*a.Supported = flag(p.collectives() && kernels.Supported(a.DataType, a.RedOp))
	return nil
}

func (p collective) RegMr(a *abi.CollNetRegMrArgs) error {
	*a.Mhandle = 0
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	*a.Mhandle, err = c.RegMr(a.Data, a.Size, rdma.MemKind(a.Type))
	return of(c, err)
}

func (p collective) RegMrDmaBuf(a *abi.CollNetRegMrDmaBufArgs) error {
	*a.Mhandle = 0
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	*a.Mhandle, err = c.RegMrDmaBuf(a.Data, a.Size, a.Offset, int(a.Fd), rdma.MemKind(a.Type))
	return of(c, err)
}

// DeregMr takes NULL for a registration that was never made, as in the net tables.
func (p collective) DeregMr(a *abi.CollNetDeregMrArgs) error {
	if a.Mhandle == 0 {
		return nil
	}
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	return of(c, c.DeregMr(a.Mhandle))
}

func (p collective) Iallreduce(a *abi.CollNetIallreduceArgs) error {
	*a.Request = 0
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	*a.Request, err = c.AllReduce(collnet.Buf{Address: a.SendData, Handle: a.SendMhandle}, collnet.Buf{Address: a.RecvData, Handle: a.RecvMhandle}, a.Count, a.DataType, a.RedOp)
	return of(c, err)
}

func (p collective) Iallgather(a *abi.CollNetIallgatherArgs) error {
	*a.Request = 0
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	*a.Request, err = c.AllGather(collnet.Buf{Address: a.SendData, Handle: a.SendMhandle}, partsOf(a.RecvParts, int(a.NRecvParts)), window(a.BytesPerRank, a.WindowOffset, a.WindowBytes))
	return of(c, err)
}

func (p collective) Ireducescatter(a *abi.CollNetIreducescatterArgs) error {
	*a.Request = 0
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	*a.Request, err = c.ReduceScatter(partsOf(a.SendParts, int(a.NSendParts)), collnet.Buf{Address: a.RecvData, Handle: a.RecvMhandle}, window(a.BytesPerRank, a.WindowOffset, a.WindowBytes), a.DataType, a.RedOp)
	return of(c, err)
}

// window is one in numbers that Go counts with; what is too large for them is refused behind.
func window(rank, off, bytes uint64) collnet.Window {
	fit := func(v uint64) int { return int(min(v, 1<<62)) }
	return collnet.Window{Rank: fit(rank), Off: fit(off), Bytes: fit(bytes)}
}

// Iflush has nothing to do: what the CPU has written to host memory is seen.
func (p collective) Iflush(a *abi.CollNetIflushArgs) error {
	*a.Request = 0
	_, err := collnet.CommOf(a.CollComm)
	return err
}

func (p collective) CloseColl(a *abi.CollNetCloseCollArgs) error {
	if a.CollComm == 0 { // as in the net tables
		return nil
	}
	c, err := collnet.CommOf(a.CollComm)
	if err != nil {
		return err
	}
	return of(c, c.Close())
}

func (p collective) CloseListen(a *abi.CollNetCloseListenArgs) error {
	if a.ListenComm == 0 {
		return nil
	}
	l, err := collnet.ListenerOf(a.ListenComm)
	if err != nil {
		return err
	}
	return of(l, l.Close())
}

// Finalize ends a context. One that Init has declined has none.
func (p collective) Finalize(a *abi.CollNetFinalizeArgs) error {
	if a.Ctx == 0 {
		return nil
	}
	c, err := p.collContexts.take("collNet.finalize", a.Ctx)
	if err != nil {
		return err
	}
	defer p.voices.drop(c.voice)
	return p.fail("collNet.finalize", c, cmp.Or(c.coll.Close(), c.net.Close()))
}
