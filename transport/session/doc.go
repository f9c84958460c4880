// Package session has the control connections of a process: one to each process
// that it connects to, and one from each that connects to it. They carry what
// two processes say about their comms, and end with the last of these. What a
// message means for a comm is the comm's concern (Comm, Config).
//
// A process's sessions, one of them, and a comm of it know each other: all.go,
// session.go, member.go and config.go. What happens to them stands above that, each
// file using only those before it: lastword.go, end.go, out.go, claim.go, hold.go,
// open.go, control.go.
package session
