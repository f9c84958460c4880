package fail

import (
	"fmt"

	"weft/internal/report"
)

// Of enum ibv_wc_status, those that more than their name is known of.
const (
	localQPOp       = 2
	flushed         = 5
	RetryExceeded   = 12
	responseTimeout = 20
)

var statuses = [...]struct {
	name   string
	cause  report.Cause
	causes []string
	rules  string // of weft doctor, that look for these
}{
	0:  {name: "SUCCESS"},
	1:  {"LOC_LEN_ERR", report.Internal, []string{"a request longer than the port's largest message, or a receive shorter than what came", "the two ends have different path MTUs"}, "WEFT-060"},
	2:  {"LOC_QP_OP_ERR", report.Internal, []string{"a request that this QP cannot do", "with Soft-RoCE: no route to the peer from the network device behind this port"}, ""},
	3:  {"LOC_EEC_OP_ERR", report.Internal, nil, ""},
	4:  {"LOC_PROT_ERR", report.Host, []string{"memory that is not registered, or was deregistered while in use", "GPU memory whose mapping was revoked"}, "WEFT-081 WEFT-082"},
	5:  {"WR_FLUSH_ERR", report.Network, []string{"the QP had already failed: the first error on it says why", "the port was down for a moment", "a path MTU above what the port carries"}, ""},
	6:  {"MW_BIND_ERR", report.Internal, nil, ""},
	7:  {"BAD_RESP_ERR", report.Network, []string{"an answer that does not fit the request: a faulty NIC, firmware or switch"}, ""},
	8:  {"LOC_ACCESS_ERR", report.Internal, []string{"the peer wrote where this side gave no right to"}, ""},
	9:  {"REM_INV_REQ_ERR", report.Peer, []string{"the peer's NIC refuses the request: its QP lacks the access right, or the message is too long for it"}, ""},
	10: {"REM_ACCESS_ERR", report.Peer, []string{"the peer deregistered the memory while it was in use", "a key or address that the peer's NIC does not know", "the peer's buffer is shorter"}, ""},
	11: {"REM_OP_ERR", report.Peer, []string{"the peer's NIC failed while it carried the request out", "the peer's memory cannot be reached any more (IOMMU, GPU reset)"}, "WEFT-081 WEFT-082"},
	12: {"RETRY_EXC_ERR", report.Network, []string{"the peer's process or host is gone", "the path is cut: cable, switch, VLAN or route", "large packets are lost: a switch port or tunnel on the way has a smaller MTU than the ports", "packets are lost: PFC or ECN is not set up for this traffic class", "the peer's GID changed"}, "WEFT-041 WEFT-060 WEFT-110 WEFT-130"},
	13: {"RNR_RETRY_EXC_ERR", report.Peer, []string{"the peer posted no receive in time: its process hangs or is stopped"}, "WEFT-131"},
	14: {"LOC_RDD_VIOL_ERR", report.Internal, nil, ""},
	15: {"REM_INV_RD_REQ_ERR", report.Peer, nil, ""},
	16: {"REM_ABORT_ERR", report.Peer, []string{"the peer ended the operation"}, ""},
	17: {"INV_EECN_ERR", report.Internal, nil, ""},
	18: {"INV_EEC_STATE_ERR", report.Internal, nil, ""},
	19: {"FATAL_ERR", report.Host, []string{"the NIC or its driver failed"}, "WEFT-053"},
	20: {"RESP_TIMEOUT_ERR", report.Network, []string{"the peer did not answer a READ in time"}, "WEFT-041 WEFT-060 WEFT-110 WEFT-130"},
	21: {"GENERAL_ERR", report.Host, []string{"the NIC or its driver failed"}, "WEFT-053"},
	22: {"TM_ERR", report.Internal, nil, ""},
	23: {"TM_RNDV_INCOMPLETE", report.Internal, nil, ""},
}

// Status says what a status of a completion means, its likely causes, most likely
// first, and which rules of weft doctor look for them.
func Status(status uint32) (name string, cause report.Cause, causes []string, rules string) {
	if int(status) < len(statuses) {
		m := &statuses[status]
		return m.name, m.cause, m.causes, m.rules
	}
	return fmt.Sprintf("status %d", status), report.Host, nil, ""
}

// OfPath reports a status that requests end with on a port whose link is down.
func OfPath(status uint32) bool {
	switch status {
	case localQPOp, flushed, RetryExceeded, responseTimeout:
		return true
	}
	return false
}
