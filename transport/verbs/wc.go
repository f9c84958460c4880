package verbs

import (
	"fmt"
	"strings"

	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// Completion is a work completion that did not succeed, as the C lane saw it.
// QP may be nil when its number is not known any more.
type Completion struct {
	Status uint32 // enum ibv_wc_status
	Vendor uint32 // vendor_err: what the driver's maker knows more
	QPN    uint32
	QP     *QP
	Work   string // what the request was: "data write", "CTS", ...
}

// Of enum ibv_wc_status; see retryExceeded too.
const (
	wcLocalQPOp       = 2
	wcFlushed         = 5
	wcResponseTimeout = 20
)

// wcMeaning says what a status means and its likely causes, most likely first.
var wcMeaning = [...]struct {
	name   string
	cause  report.Cause
	causes []string
}{
	0:  {name: "SUCCESS"},
	1:  {"LOC_LEN_ERR", report.Internal, []string{"a request longer than the port's largest message, or a receive shorter than what came", "the two ends have different path MTUs"}},
	2:  {"LOC_QP_OP_ERR", report.Internal, []string{"a request that this queue pair cannot do", "with Soft-RoCE: no route to the peer from the network device behind this port"}},
	3:  {"LOC_EEC_OP_ERR", report.Internal, nil},
	4:  {"LOC_PROT_ERR", report.Host, []string{"memory that is not registered, or was deregistered while in use", "GPU memory whose mapping was revoked"}},
	5:  {"WR_FLUSH_ERR", report.Network, []string{"the queue pair had already failed: the first error on it says why", "the port was down for a moment", "a path MTU above what the port carries"}},
	6:  {"MW_BIND_ERR", report.Internal, nil},
	7:  {"BAD_RESP_ERR", report.Network, []string{"an answer that does not fit the request: a faulty NIC, firmware or switch"}},
	8:  {"LOC_ACCESS_ERR", report.Internal, []string{"the peer wrote where this side gave no right to"}},
	9:  {"REM_INV_REQ_ERR", report.Peer, []string{"the peer's NIC refuses the request: its queue pair lacks the right, or the message is too long for it"}},
	10: {"REM_ACCESS_ERR", report.Peer, []string{"the peer deregistered the memory while it was in use", "a key or address that the peer's NIC does not know", "the peer's buffer is shorter"}},
	11: {"REM_OP_ERR", report.Peer, []string{"the peer's NIC failed while it carried the request out", "the peer's memory cannot be reached any more (IOMMU, GPU reset)"}},
	12: {"RETRY_EXC_ERR", report.Network, []string{"the peer's process or host is gone", "the path is cut: cable, switch, VLAN or route", "large packets are lost: a switch port or tunnel on the way has a smaller MTU than the ports", "packets are lost: PFC or ECN is not set up for this traffic class", "the peer's GID changed"}},
	13: {"RNR_RETRY_EXC_ERR", report.Peer, []string{"the peer posted no receive in time: its process hangs or is stopped"}},
	14: {"LOC_RDD_VIOL_ERR", report.Internal, nil},
	15: {"REM_INV_RD_REQ_ERR", report.Peer, nil},
	16: {"REM_ABORT_ERR", report.Peer, []string{"the peer ended the operation"}},
	17: {"INV_EECN_ERR", report.Internal, nil},
	18: {"INV_EEC_STATE_ERR", report.Internal, nil},
	19: {"FATAL_ERR", report.Host, []string{"the NIC or its driver failed"}},
	20: {"RESP_TIMEOUT_ERR", report.Network, []string{"the peer did not answer a READ in time"}},
	21: {"GENERAL_ERR", report.Host, []string{"the NIC or its driver failed"}},
	22: {"TM_ERR", report.Internal, nil},
	23: {"TM_RNDV_INCOMPLETE", report.Internal, nil},
}

// Explain turns a failed completion into an error of one line: status, vendor
// code, queue pair, its state and its port's, and the likely causes in order.
func (c Completion) Explain() *report.Error {
	name, cause, causes := fmt.Sprintf("status %d", c.Status), report.Host, []string(nil)
	if int(c.Status) < len(wcMeaning) {
		m := &wcMeaning[c.Status]
		name, cause, causes = m.name, m.cause, m.causes
	}
	work := c.Work
	if work == "" {
		work = "a request"
	}
	text := fmt.Sprintf("%s ended %s (%d), vendor code %#x, QP %d", work, name, c.Status, c.Vendor, c.QPN)
	dev := ""
	if c.QP != nil {
		d := c.QP.dev
		dev = d.Name
		text += fmt.Sprintf(" in state %v", c.QP.State())
		attr, errno := d.adapter.queryPort(d.portNum)
		switch {
		case errno != 0:
			text += fmt.Sprintf(", port %d cannot be queried (%v)", d.portNum, errno)
			cause, causes = report.Host, append([]string{"the device is gone or was reset"}, causes...)
		case attr.State != ibv.PortActive:
			text += fmt.Sprintf(", port %d %s", d.portNum, portStateName(attr.State))
			if c.ofPath() {
				cause, causes = report.Network, append([]string{"this port's link: cable, switch port, or the network device behind it"}, causes...)
			}
		default:
			text += fmt.Sprintf(", port %d active", d.portNum)
		}
	}
	e := report.Errorf(cause, "completion", "%s", text).On(dev)
	if len(causes) > 0 {
		e.Try("likely, in this order: %s", strings.Join(causes, "; "))
	}
	return e
}

// ofPath reports a status that requests end with on a port whose link is down.
func (c Completion) ofPath() bool {
	switch c.Status {
	case wcLocalQPOp, wcFlushed, retryExceeded, wcResponseTimeout:
		return true
	}
	return false
}

func portStateName(state int32) string {
	names := [...]string{"in no state", "down", "initialising", "armed", "active", "active (deferred)"}
	if state >= 0 && int(state) < len(names) {
		return names[state]
	}
	return fmt.Sprintf("in state %d", state)
}
