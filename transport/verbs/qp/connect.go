package qp

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
)

// Fixed parts of every connection, as NCCL sets them.
const (
	qpnMask    = 1<<24 - 1
	hopLimit   = 255
	minRNR     = 12 // 0.64 ms before a sender without a posted receive is asked to try again
	rnrForever = 7  // receives are always posted before: only a stopped process runs out
	readDepth  = 1
)

// End is one end of a connection as the other must know it. All of a peer's is
// checked before it is used.
type End struct {
	QPN, PSN uint32
	LID      uint16
	MTU      uint8   // enum ibv_mtu: the port's active one
	GID      gid.GID // Addr, Type and Bits; Index and NetDev mean nothing to others
}

// Local is this end, for a connection that leaves from gid.
func (q *QP) Local(gid gid.GID) End {
	q.life.Lock()
	psn := q.life.psn
	q.life.Unlock()
	port := q.dev.Attr()
	return End{QPN: q.Number, PSN: psn, LID: port.LID, MTU: port.ActiveMTU, GID: gid}
}

// Path is how to reach the peer's end.
type Path struct {
	GID  gid.GID // local: one of the device's
	Peer End
	SL   uint8
	TC   uint8    // the sender's holds for both ends
	ECE  *ibv.ECE // what both ends agreed on, set before RTR; nil: none

	Offered bool // ECE is the peer's offer, and may be declined
}

// Connect brings the queue pair from INIT to RTS. It waits between attempts
// that the knobs allow, so it runs in a goroutine, never in NCCL's call.
func (q *QP) Connect(ctx context.Context, path Path) error {
	peer := fmt.Sprintf("%v QP %d", path.Peer.GID.Addr.Unmap(), path.Peer.QPN)
	rtr, err := q.toRTR(&path)
	if err != nil {
		return err.With(peer)
	}
	if path.ECE != nil {
		if err := q.setECE(*path.ECE, path.Offered); err != nil {
			return err.With(peer)
		}
	}
	where := fmt.Sprintf("from GID %v, LID %d, MTU %d, service level %d, traffic class %d",
		path.GID, path.Peer.LID, ibv.MTUBytes(rtr.MTU), path.SL, path.TC)
	if err := q.step(ctx, rtr, where); err != nil {
		return err.With(peer)
	}
	k := q.card.Lib.Knobs
	q.life.Lock()
	psn := q.life.psn
	q.life.mtu = ibv.MTUBytes(rtr.MTU)
	q.life.Unlock()
	rts := &ibv.QPAttr{
		Mask: ibv.MaskState | ibv.MaskSQPSN | ibv.MaskTimeout | ibv.MaskRetryCnt | ibv.MaskRNRRetry | ibv.MaskMaxRd, State: ibv.StateRTS, SQPSN: psn,
		Timeout: uint8(k.Int(knob.IBTimeout)), Retry: uint8(k.Int(knob.IBRetryCnt)), RNRRetry: rnrForever, MaxRd: readDepth,
	}
	if err := q.step(ctx, rts, fmt.Sprintf("timeout %d, retry count %d", rts.Timeout, rts.Retry)); err != nil {
		return err.With(peer)
	}
	return nil
}

// toRTR checks the peer's end and turns the path into what RTR needs. The port
// in an address handle is the local one, whatever the peer's is; the path MTU
// is the smaller of both, on this queue pair alone.
func (q *QP) toRTR(path *Path) (*ibv.QPAttr, *report.Error) {
	d := q.dev
	port := d.Attr()
	peer := &path.Peer
	bad := func(format string, a ...any) *report.Error {
		return report.Errorf(report.Peer, "connect", format, a...).On(d.Name)
	}
	switch {
	case ibv.MTUBytes(peer.MTU) == 0:
		return nil, bad("the peer's MTU code is %d, legal are 1 to 5", peer.MTU)
	case peer.QPN == 0 || peer.QPN > qpnMask || peer.PSN > psnMask:
		return nil, bad("the peer's QP %#x or packet number %#x has more than 24 bits", peer.QPN, peer.PSN)
	case !peer.GID.Addr.IsValid() || peer.GID.Addr.IsUnspecified() || peer.GID.Addr.IsMulticast():
		return nil, bad("the peer's GID %v is no address of a port", peer.GID.Addr)
	case d.InfiniBand != (peer.GID.Type == ibv.GIDInfiniBand):
		return nil, bad("one end is InfiniBand, the other RoCE: %v and %v", path.GID, peer.GID)
	case path.GID.Reaches(peer.GID) == gid.Unreachable:
		return nil, bad("GID %v cannot reach %v (%s)", path.GID, peer.GID.Addr.Unmap(), peer.GID.Type)
	}
	rtr := &ibv.QPAttr{
		Mask: ibv.MaskState | ibv.MaskAV | ibv.MaskPathMTU | ibv.MaskDestQPN | ibv.MaskRQPSN | ibv.MaskMaxDestRd | ibv.MaskMinRNR, State: ibv.StateRTR,
		MTU: min(port.ActiveMTU, peer.MTU), DestQP: peer.QPN, RQPSN: peer.PSN, MaxDestRd: readDepth, MinRNR: minRNR,
	}
	ah := &rtr.Path
	*ah = ibv.AddressHandle{SL: path.SL, Port: d.Number(), DLID: peer.LID}
	if d.InfiniBand {
		same := path.GID.IBSubnet() == peer.GID.IBSubnet()
		if !same {
			ah.DLID = peer.GID.FLID() // a Reach of Routed has one
		}
		ah.Global = !same || port.Flags&ibv.GRHRequired != 0
	} else {
		ah.Global, ah.DLID = true, 0
		ah.TrafficClass = path.TC
	}
	if ah.Global {
		ah.DGID, ah.SGIDIndex, ah.HopLimit = netip.AddrFrom16(rdma.GIDBytes(peer.GID.Addr)), uint8(path.GID.Index), hopLimit
	}
	return rtr, nil
}

// step is one ibv_modify_qp, tried again as NCCL_IB_MQP_RETRY_* say. The n-th
// retry waits n times as long as the first.
func (q *QP) step(ctx context.Context, attr *ibv.QPAttr, what string) *report.Error {
	lib := q.card.Lib
	all, most := lib.Knobs.Int(knob.IBModifyRetryAll) != 0, int(lib.Knobs.Int(knob.IBModifyRetryCnt))
	pause := time.Duration(lib.Knobs.Int(knob.IBModifyRetrySleep)) * time.Millisecond
	for tries := 1; ; tries++ {
		errno := q.modify(attr)
		if errno == 0 {
			return nil
		}
		err := q.stepFailed(attr, errno, what)
		if tries > most || !all && errno != syscall.ETIMEDOUT {
			return err
		}
		lib.Log.Info(report.Net, "%v; try %d of %d follows in %v", err, tries+1, most+1, pause*time.Duration(tries))
		select {
		case <-ctx.Done():
			err.Err = fmt.Errorf("%w, after %d tries: %w", err.Err, tries, context.Cause(ctx))
			return err
		case <-time.After(pause * time.Duration(tries)):
		}
	}
}
