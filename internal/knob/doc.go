// Package knob holds every environment variable that weft reads: one table
// gives name, type, default, range and meaning to parsing, to the log and to
// docs/knobs.md (go test ./internal/knob -update writes that file).
//
// The package never touches the process environment: a Go runtime that was
// loaded by dlopen has a stale copy of it, so the caller passes functions that
// ask libc.
package knob
