// Package rectest makes files as the recorder writes them, and damages them, for
// tests of what reads them.
package rectest
