package plugin

import (
	"weft/abi"
	"weft/collnet"
	"weft/tuner"
)

// host is the process that the library lives in. Tests have one of their own.
type host interface {
	Getenv(name string) (string, bool)
	Environ() []string
	Module(address uintptr) module               // zero when no module holds the address
	Exports(address uintptr, symbol string) bool // does the module that holds the address?
	Log(logger uintptr, level int32, flags uint64, file string, line int, text string)
	CString(s string) *byte
	Files() (soft, hard uint64) // the limit of open files before Go started; 0 when unknown
	Thread() int                // the one that calls
	SignalStacks() []int        // gives them to handlers that lack them; the signals of those
	KeepHints(ctx uintptr) error
	DropHints(ctx uintptr)
	Hints(ctx uintptr) abi.NetAttr // what was said last through setNetAttr
	Requests() collnet.Requests
	StepEvents(callback uintptr) uintptr // the callback of table v10, made safe; 0: none
	OpenProfiler(library string, table int) (name string, version int, err error)
	BeginChained(comm uint16, mask int32, a *abi.ProfilerInitArgs) error
	ChainForgotten() uint64
	KeepVetoes(v *tuner.Vetoes) uintptr // 0: there is no room
	DropVetoes(set uintptr)
}

// module is a loaded object: where it lies and which file it is.
type module struct {
	base uintptr
	name string
}

const (
	tableGroups  = 5  // receives come in groups, handles have 128 bytes, connect and accept do not block
	tableRemote  = 6  // ncclRemoteError exists
	tableCuts    = 8  // NCCL 2.20 to 2.23 send all of a registered buffer, and go on behind what its receive took; no other release does
	tableCounts  = 9  // NCCL 2.24 and 2.25 free memory twice when makeVDevice refuses, and do not look at the number that it returns, but count devices anew
	tableConfig  = 10 // connect brings a configuration
	tableContext = 11 // init makes a context, once per communicator
)

// handleSize is NCCL_NET_HANDLE_MAXSIZE of the releases that use a table.
func handleSize(table int) int {
	if table < tableGroups {
		return 64
	}
	return 128
}
