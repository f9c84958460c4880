// Package metrics reads the files in which processes count what their connections do
// (WEFT_PROFILE=metrics): those that are being written, those of processes that have
// ended, and what can be read of damaged ones.
package metrics
