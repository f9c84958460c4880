// Package qp makes queue pairs and completion queues, joins them with a peer's, and
// proves that packets pass. In the order of a connection's life:
//
//  1. NewCQ, New: the queue pair is in INIT.
//  2. QP.Local travels to the peer, its End comes back; QP.Connect goes to RTS.
//  3. Prove writes packets of each size, and waits for what acknowledges them.
//  4. Completion.Explain says why a request failed; QP.Fence stops, QP.Close destroys.
//
// Bytes never pass through it: the C lane posts and polls by QP.Pointer and
// CQ.Pointer.
package qp
