package qp

import (
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// The ends of a connection agree on a vendor's enhancements like this:
//
//  1. the connecting side asks its queue pair (QueryECE) and sends the answer;
//  2. the listening side passes that in Path.ECE, connects, and asks its own
//     queue pair for what is left of it, which it sends back;
//  3. the connecting side passes that in its Path.ECE.

// QueryECE returns the queue pair's options; false where there are none:
// NCCL_IB_ECE_ENABLE=0, library or device do not know them, or the peer's were
// declined.
func (q *QP) QueryECE() (ibv.ECE, bool, error) {
	if !q.ece() {
		return ibv.ECE{}, false, nil
	}
	var e ibv.ECE
	errno := q.call(func(lib *ibv.Calls) (errno syscall.Errno) { e, errno = lib.QueryECE(q.raw); return errno })
	q.card.ECE.Learn("ibv_query_ece", errno)
	switch {
	case errno == 0:
		return e, true, nil
	case fail.Unsupported(errno):
		return ibv.ECE{}, q.ece(), nil
	}
	return ibv.ECE{}, false, fail.Call("ibv_query_ece", q.dev.Name, errno, "QP %d", q.Number)
}

// ece reports whether the queue pair may have options; a card that knows none
// says so once.
func (q *QP) ece() bool {
	c := q.card
	if c.Lib.Knobs.Int(knob.IBECE) == 0 || q.declined.Load() {
		return false
	}
	why, refused := c.ECE.Refused()
	if refused {
		c.Once("no ECE", func() { c.Lib.Log.Info(report.Net, "connections of %s do without ECE: %s", c.Name, why) })
	}
	return !refused
}

// setECE takes over what both ends know. An end that does not know it connects
// without: the options only ever add to the standard. So does the end that is
// offered another vendor's, which it declines: the peer hears that nothing is left.
func (q *QP) setECE(e ibv.ECE, offered bool) *report.Error {
	if !q.ece() {
		return nil
	}
	c := q.card
	errno := q.call(func(lib *ibv.Calls) syscall.Errno { return lib.SetECE(q.raw, e) })
	c.ECE.Learn("ibv_set_ece", errno)
	switch {
	case errno == 0 || fail.Unsupported(errno):
		return nil
	case errno == syscall.EINVAL && offered:
		q.declined.Store(true)
		c.Once("declined ECE", func() {
			c.Lib.Log.Info(report.Net, "%s declines a peer's ECE of vendor %#x, options %#x", c.Name, e.Vendor, e.Options)
		})
		return nil
	}
	return fail.Call("ibv_set_ece", q.dev.Name, errno, "QP %d, vendor %#x, options %#x", q.Number, e.Vendor, e.Options)
}
