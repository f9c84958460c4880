// Package rendezvous brings two processes together over TCP: one set of
// listening sockets per process, the paths to a listener's addresses and the race
// along them, frames 1 to 3, which prove the token of a listen, and what bounds
// strangers. What is said on a proven connection is not its concern.
package rendezvous
