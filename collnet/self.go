package collnet

import (
	"errors"
	"fmt"
	"strings"

	"weft/internal/report"
)

// self is one rank of a comm, as its errors name it.
type self struct {
	name string // of the device
	rank int
	n    int
}

// errorf is an error of a call on the comm.
func (s self) errorf(cause report.Cause, op, format string, a ...any) *report.Error {
	return report.Errorf(cause, "collNet."+op, format, a...).On(s.name)
}

// lostMark begins what ranks tell each other of one that is lost, so that all name the same one.
const lostMark = "the collective comm lost rank "

// lost says that what connects this rank to another has failed.
func (s self) lost(op string, rank int, l Link, err error) error {
	cause := report.CauseOf(err)
	text := err.Error()
	if _, told, relayed := strings.Cut(report.Reason(err), lostMark); relayed { // without the remedy: that rank's log says no more
		text = lostMark + told
	} else {
		text = fmt.Sprintf("%s%d of %d: %s", lostMark, rank, s.n, text)
	}
	return s.errorf(cause, op, "%w", errors.New(text)).With(fmt.Sprintf("rank %d (%s)", rank, l.Peer()))
}
