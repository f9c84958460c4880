package fastpath

/*
#include "lane.h"
*/
import "C"

import "syscall"

// FaultKind says what the executor met, as enum wf_fault_kind does: what the fields of a Fault hold for each is told there.
type FaultKind uint32

const (
	FaultPeerClosed FaultKind = C.WF_FAULT_PEER_CLOSED
	FaultSocket     FaultKind = C.WF_FAULT_SOCKET
	FaultProtocol   FaultKind = C.WF_FAULT_PROTOCOL
	FaultTooLarge   FaultKind = C.WF_FAULT_TOO_LARGE
	FaultAhead      FaultKind = C.WF_FAULT_AHEAD
	FaultHandle     FaultKind = C.WF_FAULT_HANDLE
	FaultArgument   FaultKind = C.WF_FAULT_ARGUMENT
	FaultMR         FaultKind = C.WF_FAULT_MR
	FaultInternal   FaultKind = C.WF_FAULT_INTERNAL
	FaultCompletion FaultKind = C.WF_FAULT_COMPLETION
	FaultPost       FaultKind = C.WF_FAULT_POST
	FaultHeld       FaultKind = C.WF_FAULT_HELD
	FaultThreads    FaultKind = C.WF_FAULT_THREADS
	FaultNull       FaultKind = C.WF_FAULT_NULL
	FaultEnded      FaultKind = C.WF_FAULT_ENDED
)

// Fault is struct wf_fault: what the executor met on a comm, or in a call that belongs to none.
type Fault struct {
	Kind      FaultKind
	Errno     syscall.Errno
	Entry     uint32
	Lane      uint32 // of the comm; FaultDevice and above: of none, but of a device
	Seq       uint64
	Want, Got uint64
	Where     string
	Call      string // of the host
}

// FaultDevice plus a device's slot stands in Fault.Lane in place of a lane.
const FaultDevice = C.WF_LANES
