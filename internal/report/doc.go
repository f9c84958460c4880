// Package report is how weft says what happened: errors with a cause, a peer
// and a remedy, the logger that they are told to, and a recorder for tests.
package report
