package plugin

import (
	"path/filepath"
	"slices"
	"strconv"
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
//	                        NONE  VERSION  ERROR  WARN  INFO  ABORT  TRACE  ATTN
//	NCCL, RCCL to ROCm 7.1     0        1           2     3      4      5     6, from 2.32 on
//	NCCLX                      0        1      2    3     4      5      6     7, from 2.32 on
//	RCCL from ROCm 7.2 on      0        2      1    3     4      5      6
//
// What weft says has the same numbers wherever there is an ERROR.
var (
	ncclLevels  = levels{warn: int32(abi.NCCL_LOG_WARN), info: int32(abi.NCCL_LOG_INFO), trace: int32(abi.NCCL_LOG_TRACE)}
	errorLevels = levels{warn: 3, info: 4, trace: 6}
)

// Functions by which hosts are known.
const (
	// ncclxMark is of NCCLX's interface, since 2.18, and of no other NCCL's. Its tree has releases that are not NCCLX's yet, as
	// 2.31 was at first: they lack the function, and number as NCCL does.
	ncclxMark = "ncclCommGetUniqueHash"
	// rcclMark is of RCCL's interface, and rcclErrorMark came to it with 2.28.3, after ERROR had come with ROCm 7.2's 2.27.7.
	rcclMark      = "ncclAllToAllv"
	rcclErrorMark = "ncclCommDump"
	// rcclError is the first ROCm whose RCCL has ERROR, as the name of its file ends: librccl.so.1.0.70200.
	rcclError = 70200
)

// levelsOf are those of the host that gave a log function, by the module of that function.
func levelsOf(h host, function uintptr) levels {
	switch {
	case function == 0:
	case h.Exports(function, ncclxMark):
		return errorLevels
	case h.Exports(function, rcclMark) && (h.Exports(function, rcclErrorMark) || rocm(h.Module(function).name) >= rcclError):
		return errorLevels
	}
	return ncclLevels
}

// rocm is the number of the ROCm that a library is of, by the name of its file; 0 when that does not tell.
func rocm(library string) int {
	if file, err := filepath.EvalSymlinks(library); err == nil {
		library = file
	}
	_, version, _ := strings.Cut(filepath.Base(library), ".so.")
	number, err := strconv.Atoi(version[strings.LastIndexByte(version, '.')+1:])
	if err != nil {
		return 0
	}
	return number
}

// prints tells whether the host prints INFO and TRACE lines: NCCL_DEBUG names one level, and from 2.32 on NCCL_DEBUG_LEVELS adds
// some. A host counts as one that prints INFO lines where that cannot be known: NCCL_WARN_ENABLE_DEBUG_INFO turns them on with
// the first warning, and what an NCCL_ENV_PLUGIN gives is not seen here.
func prints(h host) (infos, traces bool) {
	level, _ := h.Getenv("NCCL_DEBUG")
	more, _ := h.Getenv("NCCL_DEBUG_LEVELS")
	names := append(strings.Split(more, ","), level)
	named := func(of ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(of, func(one string) bool { return strings.EqualFold(strings.TrimSpace(name), one) })
		})
	}
	later, _ := h.Getenv("NCCL_WARN_ENABLE_DEBUG_INFO")
	foreign, _ := h.Getenv("NCCL_ENV_PLUGIN")
	traces = named("TRACE", "ALL")
	return traces || named("INFO", "ABORT") || later != "" && later != "0" || foreign != "" && foreign != "none", traces
}
