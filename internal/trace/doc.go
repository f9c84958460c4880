// Package trace reads the files in which processes have recorded what happened:
// whole ones, those that are still being written, and what can be read of
// damaged ones. What the records mean together is package model's.
package trace
