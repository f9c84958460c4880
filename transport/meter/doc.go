// Package meter counts what the connections of a process do, in a file that is mapped
// into memory, which can be read while the process runs and after it was killed. The
// thread that moves a connection's messages counts them, in C; which place of the file
// that is, and what becomes of it when the connection is closed, is decided here.
package meter
