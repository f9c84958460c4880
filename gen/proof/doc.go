// Package proof holds tests only: that headers nobody has seen yet regenerate,
// build and work without an edit by hand, and that a stale header is never
// built in.
package proof
