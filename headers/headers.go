// Package headers embeds the C headers that weft is generated from and built
// with; `go run ./gen drop SRC` adds to them. A cgo package that includes one
// imports this package: that is how the go command learns when one changes.
package headers

import "embed"

// FS holds the headers (nccl/..., verbs/...), the layouts and lookups measured
// in NCCL's releases (facts/...), and the fingerprints of every field (LOCK).
//
//go:embed nccl verbs facts LOCK
var FS embed.FS
