// Package route decides between which ports a connection runs and how it uses
// them: pure functions of what both hosts have and of the knobs.
package route
