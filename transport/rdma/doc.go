// Package rdma holds the nouns that the transport, its providers and the
// plugin share: devices, memory kinds, what the host says of the work to come.
// It touches no hardware.
package rdma
