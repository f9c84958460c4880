package verbs

import (
	"syscall"

	"weft/internal/knob"
	"weft/transport/rdma"
)

// ECE are a vendor's enhancements that the ends of a connection agree on:
//
//  1. the connecting side asks its queue pair (QueryECE) and sends the answer;
//  2. the listening side passes that in Path.ECE, connects, and asks its own
//     queue pair for what is left of it, which it sends back;
//  3. the connecting side passes that in its Path.ECE.
type ECE struct {
	Vendor, Options, CompMask uint32
}

// QueryECE answers the queue pair's options; false where there are none:
// NCCL_IB_ECE_ENABLE=0, or library or device do not know them.
func (q *QP) QueryECE() (ECE, bool, error) {
	if !q.ece() {
		return ECE{}, false, nil
	}
	var e ECE
	errno := q.call(func(lib *calls) (errno syscall.Errno) { e, errno = lib.queryECE(q.raw); return errno })
	q.pd.a.ece.learn("ibv_query_ece", errno)
	switch {
	case errno == 0:
		return e, true, nil
	case unsupported(errno):
		return ECE{}, false, nil
	}
	return ECE{}, false, fail("ibv_query_ece", q.dev.Name, errno, "queue pair %d", q.Number)
}

func (q *QP) ece() bool {
	_, refused := q.pd.a.ece.refused()
	return !refused && q.dev.provider.knobs.Int(knob.IBECE) != 0
}

// setECE takes over what both ends know. An end that does not know it connects
// without: the options only ever add to the standard.
func (q *QP) setECE(e ECE) *rdma.Error {
	if !q.ece() {
		return nil
	}
	errno := q.call(func(lib *calls) syscall.Errno { return lib.setECE(q.raw, e) })
	q.pd.a.ece.learn("ibv_set_ece", errno)
	if errno == 0 || unsupported(errno) {
		return nil
	}
	return fail("ibv_set_ece", q.dev.Name, errno, "queue pair %d, vendor %#x, options %#x", q.Number, e.Vendor, e.Options)
}
