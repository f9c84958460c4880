package knob

import "maps"

// ID names one knob; it is the index into the table.
type ID int

const (
	SocketIfname ID = iota
	SocketFamily
	CommID
	SocketNThreads
	NSocksPerThread
	SocketInline
	SocketMinTaskSize
	SocketRetryCnt
	SocketRetrySleep
	SocketPollTimeout
	SocketRcvBuf
	SocketSndBuf
	SocketMagic
	SocketTOS

	IBDisable
	IBHCA
	IBVerbsLib
	IBGIDIndex
	IBRoutableFLID
	IBRoceVersion
	IBAddrFamily
	IBAddrRange
	IBSubnetAwareRouting
	IBSubnetPrefixLen
	IBTimeout
	IBRetryCnt
	IBPkey
	IBPkeyValue
	IBSL
	IBTC
	IBFifoTC
	IBUseInline
	IBQPsPerConnection
	IBSplitDataOnQPs
	IBAdaptiveRouting
	IBARThreshold
	IBOOORQ
	IBMatchingScheme
	IBPrepost
	IBECE
	IBRelaxedOrdering
	IBDataDirect
	IBMergeVFs
	IBMergeNICs
	IBPCIOrder
	IBWarnRailLocal
	IBQueryPortSpeed
	IBAsyncEvents
	IBEventBasedLB
	IBEventBasedLBRemote
	IBRailPolicy
	IBSortMergeNICs
	IBLatencyThreshold
	IBLatencyReport
	IBModifyRetryAll
	IBModifyRetryCnt
	IBModifyRetrySleep
	GDRFlushDisable
	IBPortFailover
	IBFailoverAttempts
	IBFailoverProbeDelay
	IBPortRecovery
	IBRecoveryStartDelay
	IBRecoveryBatchInterval
	IBRecoveryBatchSize
	IBRecoverySequenceSize
	IBRecoveryAliveTimeout
	IBRecoveryAckTimeout
	IBRecoveryAttempts

	Congestion
	ZeroCopy
	Flush
	StripeMin
	Striping
	Lazy
	Pool
	Timeout
	ConnectTimeout
	AcceptTimeout
	PortRange
	Require
	LogLevels
	NetEvents
	Profile
	ProfileEvents
	ProfileDir
	ProfileSize
	ProfilerChain
	StallSeconds
	CollNet
	CollNetChunk

	count
)

// Type is how a knob's text is read.
type Type uint8

const (
	Number  Type = iota // strtoll base 0: 16, 0x10, 020
	Bits                // strtoull base 0: any 64-bit pattern
	Text                // taken as it is
	Choice              // one of Spec.Choices
	Ports               // LOW-HIGH or one port
	Seconds             // a Number of seconds
	Switch              // a Number that is 0 or, whatever else it is, counts as 1: as NCCL has it
)

func (t Type) String() string {
	return [...]string{"number", "bits", "text", "choice", "ports", "seconds", "switch"}[t]
}

// Spec is one row of the table. The texts are Markdown, for docs/knobs.md.
type Spec struct {
	Name    string
	Also    string // RCCL's other name for it, which counts where Name is unset; "" when there is none
	Type    Type
	Default int64
	Min     int64
	Max     int64
	Special []int64 // legal besides Min..Max
	Unit    string  // of a Number that has one: users write the number alone
	Choices []string
	Inert   string // why it changes nothing here; "" when it has an effect
	Doc     string // what weft makes of it
	Theirs  string // what NCCL makes of it, its default first; "" for weft's own
	Differs string // how weft's meaning differs; "" when it does not
}

// The rows stand in rows_*.go, by who made the names up.
var table = rows(socketRows, ibRows, resiliencyRows, ownRows)

func rows(groups ...map[ID]Spec) (t [count]Spec) {
	for _, g := range groups {
		for id, s := range maps.All(g) {
			t[id] = s
		}
	}
	return t
}

// Lookup returns the row of id.
func Lookup(id ID) Spec { return table[id] }

// All returns the rows in the table's order.
func All() []Spec { return append([]Spec(nil), table[:]...) }
