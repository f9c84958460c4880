package offers

import (
	"errors"
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/lanes"
	"weft/transport/route"
)

// finalError is why a connection must not be made, in another way neither: the
// user asked for something that one side cannot do.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// anyOrder decides whether the queue pairs of a route are such whose requests
// arrive in any order (NCCL_IB_OOO_RQ). Where they were asked for and cannot be
// had there is no connection: the user counts on them.
func (w *Way) anyOrder(pairs []route.Pair) (bool, error) {
	if w.Knobs.Int(knob.IBOOORQ) == 0 {
		return false, nil
	}
	for i := range pairs {
		if err := pairs[i].Local.AnyOrder(lanes.Depth); err != nil {
			return false, &finalError{err}
		}
	}
	if route.Adaptive(w.Knobs, pairs) == 0 {
		return false, &finalError{report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "out-of-order receives need adaptive routing, which is off").
			On(pairs[0].Local.Name).Try("set NCCL_IB_ADAPTIVE_ROUTING=1, or unset NCCL_IB_OOO_RQ")}
	}
	return true, nil
}

// agreeOnOrder is why the listening side cannot have what it is offered.
func (w *Way) agreeOnOrder(pairs []route.Pair, offered bool) error {
	mine, err := w.anyOrder(pairs)
	if err == nil && mine != offered {
		on := map[bool]int{true: 1}
		return &finalError{report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "it is %d on the listening side and %d on the connecting one", on[mine], on[offered]).
			On(pairs[0].Local.Name).Try("set it alike on all hosts")}
	}
	return err
}

// withPeer names the other side in an error that does not yet.
func withPeer(err error, peer string) error {
	var e *report.Error
	if errors.As(err, &e) && e.Peer == "" {
		e.Peer = peer
	}
	return err
}

// refused is how the connecting side hears what ended the listening side's.
func refused(reason string, final bool) error {
	err := fmt.Errorf("the peer refuses: %s", reason)
	if !final {
		return err
	}
	return &finalError{report.Errorf(report.Usage, "connect", "%w", err)}
}
