package report

import "errors"

// Reason is an error as a peer is told of it: what happened, and on which device.
func Reason(err error) string {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Dev == "":
		return e.Err.Error()
	}
	return e.Dev + ": " + e.Err.Error()
}
