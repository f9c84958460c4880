// Package record keeps what happens in a file that is mapped into memory, which
// can be read while the process runs and after it was killed. Records are
// written in C, by the thread on which something happens; which file that is,
// and what stands in it once per communicator or connection, is decided here.
package record
