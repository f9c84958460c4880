// Package profiler is the slow half of the profiler tables: which communicators
// are recorded, and which of their events. The events themselves are recorded in
// C, on the threads that move data (plugin/profile.c).
package profiler
