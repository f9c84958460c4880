// Package lanes carries a comm over RDMA: queue pairs that the executor posts to,
// the lanes of the comm.
//
//   - carrier.go, plan.go and life.go make a comm's queue pairs, hand them to the
//     executor, and end them;
//   - offer.go is what the two sides say of the first lanes, further.go, growth.go and
//     talk.go how more of them come later;
//   - flush.go is about the queue pairs through which received data is flushed;
//   - kit.go keeps the queue pairs of a closed comm for a later one.
package lanes
