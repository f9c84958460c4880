package plugin

import (
	"errors"

	"weft/abi"
	"weft/internal/report"
)

// ncclResult_t. ncclInvalidArgument (4) is not among them: NCCL takes it for a
// mistake in its own call and says nothing of the cause.
const (
	resultSuccess       = 0
	resultCudaError     = 1
	resultSystemError   = 2
	resultInternalError = 3
	resultInvalidUsage  = 5
	resultRemoteError   = 6
)

// Code is the only place where an error becomes an ncclResult_t. table is the
// version of the table that asked; 0 when the call does not tell.
func Code(err error, table int) int32 {
	if err == nil {
		return resultSuccess
	}
	switch report.CauseOf(err) {
	case report.Peer, report.Network:
		if table != 0 && table < tableRemote {
			return resultSystemError
		}
		return resultRemoteError
	case report.Host:
		return resultSystemError
	case report.Usage:
		return resultInvalidUsage
	case report.Cuda:
		return resultCudaError
	}
	return resultInternalError
}

// tableError says on whose behalf an error happened.
type tableError struct {
	error
	table int
	log   report.Logger
}

func (e *tableError) Unwrap() error { return e.error }

// classified gives an error without a cause the one that fits, and a place.
func classified(call string, err error) error {
	var e *report.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, abi.ErrUnsupported):
		return report.Errorf(report.Unsupported, call, "%w", abi.ErrUnsupported)
	}
	return report.Errorf(report.Internal, call, "%w", err)
}
