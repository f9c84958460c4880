// Package session has the control connections of a process: one to each process
// that it connects to, and one from each that connects to it. They carry what
// two processes say about their comms, and end with the last of these. What a
// message means for a comm is the comm's concern (Comm, Config).
package session
