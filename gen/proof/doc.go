// Package proof holds tests only: that headers nobody has seen yet are imported,
// regenerate, build, work and pass the bench without an edit by hand, and that a
// stale header is never built in.
package proof
