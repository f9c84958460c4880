// Package collnet performs whole collectives between hosts in software, over a
// net that its caller has: listens, collective comms, what they have registered,
// and the work of each comm, which sends, receives and reduces.
//
// An all-reduce goes like this:
//
//  1. Connect has joined the ranks: a pair of connections to each, on each of a
//     few tracks, and everybody knows the same of all paths.
//  2. AllReduce checks its arguments, takes a request word and queues the
//     operation.
//  3. What follows is done in steps, by the host's thread whenever it calls test
//     (Help), or by the comm's goroutine where the host does not call for a while.
//  4. An algorithm is picked, and the operation cut into chunks. A chunk takes the
//     next track, when the chunk before it there is done: the connections of a
//     track carry messages in order, so that both ends agree on which is which, and
//     several tracks are the pipeline.
//  5. A step posts what a round of the chunk's plan sends and receives, tests that,
//     and reduces what has arrived, a slice at a time.
//  6. The request's word says that it is done, once those before it are.
package collnet
