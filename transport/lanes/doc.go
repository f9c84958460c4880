// Package lanes carries a comm over RDMA: queue pairs that the executor posts to,
// the lanes of the comm. Its files use only those that stand above them here:
//
//   - lane.go and onport.go are a lane and what it runs on, kit.go what a closed comm
//     leaves of both, shared.go what all comms of a process share;
//   - carrier.go is what a comm has of them; further.go tells how more lanes come;
//   - flush.go makes the queue pairs through which received data is flushed, plan.go
//     says how the executor uses lanes;
//   - end.go, again.go and life.go end a comm, or leave it to the pool; make.go and
//     offer.go make one, and say it to the other side;
//   - growth.go makes further lanes, say.go tells of it, lead.go and talk.go are the
//     two sides of that;
//   - subject.go is what the watcher asks, line.go and explain.go what people read.
package lanes
