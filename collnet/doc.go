// Package collnet performs whole collectives between hosts in software, over a
// net that its caller has: listens, collective comms, what they have registered,
// and the goroutine of each comm that sends, receives and reduces.
//
// An all-reduce goes like this:
//
//  1. Connect has joined the ranks: a pair of connections to each, on each of a
//     few tracks, and everybody knows the same of all paths.
//  2. AllReduce checks its arguments, takes a request word and queues the
//     operation. The host's thread does no more.
//  3. The comm's goroutine picks an algorithm and cuts the operation into chunks.
//     A chunk takes the next track, when the chunk before it there is done: the
//     connections of a track carry messages in order, so that both ends agree on
//     which is which, and several tracks are the pipeline.
//  4. It posts what a round of the chunk's plan sends and receives, tests that,
//     and reduces what has arrived, a slice at a time.
//  5. The request's word says that it is done, once those before it are.
package collnet
