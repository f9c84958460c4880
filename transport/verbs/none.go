package verbs

import (
	"errors"

	"weft/internal/report"
)

// ErrNone is wrapped by errors of Open that are no fault: there is no library,
// or no device to use. The transport says them at INFO and uses TCP.
var ErrNone = errors.New("no RDMA here")

func none(format string, a ...any) error {
	return report.Errorf(report.Unsupported, "verbs", format+": %w", append(a, ErrNone)...)
}
