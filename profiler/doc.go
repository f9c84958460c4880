// Package profiler implements the profiler tables. Today it refuses: the
// tables, their shims and their layouts are complete, and no event is asked for.
package profiler
