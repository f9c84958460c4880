// Package plugin joins the host's tables to the transport: it owns the state
// of the process, the contexts, the log and the result codes. Everything below
// speaks Go errors and Go values; everything above is generated.
//
// zz_exports.go, which calls netImpl, done and recovered of entry.go, and zz_slow.h come
// from `make regen`.
package plugin
