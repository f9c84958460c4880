// Package archtest holds the tests that keep the architecture as ARCHITECTURE.md draws it; it has no code of its own.
package archtest
