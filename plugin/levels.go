package plugin

import (
	"slices"
	"strings"

	"weft/abi"
)

// severity is what weft has to say of a line; it has no use for other levels of NCCL's.
type severity int

const (
	warn severity = iota
	info
	trace
)

// levels are the numbers that a host has for them.
type levels [3]int32

// The numberings that there are:
//
//	          NONE  VERSION  ERROR  WARN  INFO  ABORT  TRACE  ATTN
//	NCCL         0        1           2     3      4      5     6, from 2.32 on
//	NCCLX        0        1      2    3     4      5      6     7, from 2.32 on
//
// RCCL has NCCL's.
var (
	ncclLevels  = levels{warn: int32(abi.NCCL_LOG_WARN), info: int32(abi.NCCL_LOG_INFO), trace: int32(abi.NCCL_LOG_TRACE)}
	ncclxLevels = levels{warn: 3, info: 4, trace: 6}
)

// ncclxMark is a function of NCCLX's interface, since 2.18, that no other NCCL has. Its tree has releases that are not NCCLX's
// yet, as 2.31 was at first: they lack the function, and number as NCCL does.
const ncclxMark = "ncclCommGetUniqueHash"

// levelsOf are those of the host that gave a log function, by what the module of that function exports.
func levelsOf(h host, function uintptr) levels {
	if function != 0 && h.Exports(function, ncclxMark) {
		return ncclxLevels
	}
	return ncclLevels
}

// traces tells whether the host prints TRACE lines: NCCL_DEBUG names one level, and from 2.32 on NCCL_DEBUG_LEVELS adds some.
func traces(h host) bool {
	level, _ := h.Getenv("NCCL_DEBUG")
	more, _ := h.Getenv("NCCL_DEBUG_LEVELS")
	return slices.ContainsFunc(append(strings.Split(more, ","), level), func(name string) bool {
		return strings.EqualFold(name, "TRACE") || strings.EqualFold(name, "ALL")
	})
}

// force takes the user's word for it: a value of WEFT_LOG_LEVELS, empty where it is not set.
func (v *voices) force(name string) {
	switch name {
	case "nccl":
		v.forced.Store(&ncclLevels)
	case "ncclx":
		v.forced.Store(&ncclxLevels)
	}
}
