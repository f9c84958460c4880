// Package tcp is the provider that every machine has: it finds the interfaces
// and what NCCL wants to know of them, sets socket options, and moves the bytes
// of a lane over TCP streams, in C on the host's thread (stream.c, frames.c). It opens no
// connection; that is the control plane's.
package tcp
