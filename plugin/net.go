package plugin

import (
	"errors"

	"weft/abi"
	"weft/internal/report"
	"weft/transport/rdma"
)

// The functions of the net tables, in the order in which a host calls them.

func (p *process) Devices(a *abi.NetDevicesArgs) error { return p.tellDevices(a.Ndev, ofNet) }

func (p *process) tellDevices(ndev *int32, f family) error {
	*ndev = 0
	if _, err := p.current("devices"); err != nil {
		return err
	}
	*ndev = int32(p.list.count(f))
	return nil
}

func (p *process) Listen(a *abi.NetListenArgs) error {
	*a.ListenComm = 0
	c, err := p.contexts.find("listen", a.Ctx)
	if err != nil {
		return err
	}
	p.signals.giveStacksNowAndThen(c.log)
	l, err := c.net.Listen(int(a.Dev), handleBytes(a.Handle, c.table))
	if err != nil {
		return c.fail(err)
	}
	*a.ListenComm = l.Handle()
	return nil
}

func (p *process) Connect(a *abi.NetConnectArgs) error {
	*a.SendComm = 0
	if a.SendDevComm != nil {
		*a.SendDevComm = nil
	}
	c, err := p.contexts.find("connect", a.Ctx)
	if err != nil {
		return err
	}
	p.signals.giveStacksNowAndThen(c.log)
	class := c.trafficClass
	if a.Config != nil { // v10 configures each connection
		class = c.class(a.Config)
	}
	s, err := c.net.Connect(int(a.Dev), class, handleBytes(a.Handle, c.table))
	if err != nil {
		return c.fail(err)
	}
	if s != nil {
		*a.SendComm = s.Handle()
	}
	return nil
}

func (p *process) Accept(a *abi.NetAcceptArgs) error {
	*a.RecvComm = 0
	if a.RecvDevComm != nil {
		*a.RecvDevComm = nil
	}
	l, err := p.listener("accept", a.ListenComm)
	if err != nil {
		return err
	}
	r, err := l.Accept()
	if err != nil {
		return of(l, err)
	}
	if r != nil {
		*a.RecvComm = r.Handle()
	}
	return nil
}

func (p *process) RegMr(a *abi.NetRegMrArgs) error {
	*a.Mhandle = 0
	c, err := p.comm("regMr", a.Comm, anySide)
	if err != nil {
		return err
	}
	*a.Mhandle, err = c.RegMr(a.Data, a.Size, rdma.MemKind(a.Type))
	return of(c, err)
}

func (p *process) RegMrDmaBuf(a *abi.NetRegMrDmaBufArgs) error {
	*a.Mhandle = 0
	c, err := p.comm("regMrDmaBuf", a.Comm, anySide)
	if err != nil {
		return err
	}
	*a.Mhandle, err = c.RegMrDmaBuf(a.Data, a.Size, a.Offset, int(a.Fd), rdma.MemKind(a.Type))
	return of(c, err)
}

// DeregMr takes NULL for a registration that was never made, as NCCL's own networks do.
func (p *process) DeregMr(a *abi.NetDeregMrArgs) error {
	if a.Mhandle == 0 {
		return nil
	}
	c, err := p.comm("deregMr", a.Comm, anySide)
	if err != nil {
		return err
	}
	return of(c, c.DeregMr(a.Mhandle))
}

func (p *process) CloseSend(a *abi.NetCloseSendArgs) error {
	return p.close("closeSend", a.SendComm, sendSide)
}

func (p *process) CloseRecv(a *abi.NetCloseRecvArgs) error {
	return p.close("closeRecv", a.RecvComm, recvSide)
}

// close takes NULL for a comm that was never made: NCCL 2.14 and older, and a bootstrap over the network, close what
// they have of a connection that was begun, and leave everything behind it open when that is an error.
func (p *process) close(call string, handle uintptr, s side) error {
	if handle == 0 {
		return nil
	}
	c, err := p.comm(call, handle, s)
	if err != nil {
		return err
	}
	return of(c, c.Close())
}

func (p *process) CloseListen(a *abi.NetCloseListenArgs) error {
	if a.ListenComm == 0 { // as in close
		return nil
	}
	l, err := p.listener("closeListen", a.ListenComm)
	if err != nil {
		return err
	}
	return of(l, l.Close())
}

// hints are what the host has said last about the work to come (setNetAttr, which C serves): connections made from now on are
// tuned to it, and nothing fails because of it.
func (p *process) hints(c *netCtx) rdma.Attr {
	n := p.host.Hints(c.value)
	return rdma.Attr{Send: commAttr(n.SendCommAttr), Recv: commAttr(n.RecvCommAttr), Op: n.Op, Algo: n.Algo, Proto: n.Proto}
}

func commAttr(a abi.NetCommAttr) rdma.CommAttr {
	return rdma.CommAttr{
		MaxConcurrentPeers: a.MaxConcurrentPeers, MinConcurrentPeers: a.MinConcurrentPeers,
		MaxFlowsPerPeer: a.MaxFlowsPerPeer, MinFlowsPerPeer: a.MinFlowsPerPeer,
	}
}

func (p *process) comm(call string, handle uintptr, s side) (comm, error) {
	e, err := p.current(call)
	if err != nil {
		return nil, err
	}
	c, err := e.Comm(handle, s)
	return c, inCall(call, err)
}

func (p *process) listener(call string, handle uintptr) (listener, error) {
	e, err := p.current(call)
	if err != nil {
		return nil, err
	}
	l, err := e.Listener(handle)
	return l, inCall(call, err)
}

// inCall names the call in an error of a look-up, which does not know it.
func inCall(call string, err error) error {
	var e *report.Error
	if errors.As(err, &e) {
		e.Op = call
	}
	return err
}

// of marks an error with the owner of the comm or listener it happened on.
func of(o owner, err error) error {
	if err == nil {
		return nil
	}
	return &tableError{err, o.Table(), o.Log()}
}
