// Package port is one port of a card as a device: what the host sees of it, its
// addresses and its state, which questions and events change.
package port
