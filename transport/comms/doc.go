// Package comms has the process's comms: the host's calls on one, its memory,
// what its executor, its peer and its session tell it, and its end.
package comms
