// Package memory is what the host has registered: memory belongs to a device of
// the host, and is pinned on each port that carries comms of that device.
package memory
