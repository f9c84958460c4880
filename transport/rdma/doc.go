// Package rdma holds the nouns that the transport, its providers and the
// plugin share: devices, memory kinds, errors with a cause, the logger. It
// touches no hardware and imports nothing of weft.
package rdma
