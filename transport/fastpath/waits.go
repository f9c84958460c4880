package fastpath

/*
#include "fastpath.h"
*/
import "C"

// Where weft_connect_waits finds in a handle which listen it leads to, and which connect of it the host polls.
const (
	HandleListen = C.WF_HANDLE_LISTEN
	HandleState  = C.WF_HANDLE_STATE
)

// Wait says of a connect or an accept, which the host may poll, that nothing has come of it yet. C answers the polls
// until it ends.
type Wait struct{ id, of uint64 }

// ConnectWait is a connect's, by the state in its handle and the listen it leads to.
func ConnectWait(state, listen uint64) Wait { return Wait{state, listen} }

// AcceptWait is that of a listen, by the value that the host holds.
func AcceptWait(handle uint64) Wait { return Wait{handle, 0} }

// Begin has C answer.
func (w Wait) Begin() { C.wf_wait(C.uint64_t(w.id), C.uint64_t(w.of)) }

// End has the next poll ask Go.
func (w Wait) End() { C.wf_wait_end(C.uint64_t(w.id), C.uint64_t(w.of)) }

// Asked reports whether C has answered a poll since the last call.
func (w Wait) Asked() bool { return C.wf_wait_asked(C.uint64_t(w.id), C.uint64_t(w.of)) != 0 }
