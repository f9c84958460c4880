package link

import "io"

// Second builds a small Go library that runs goroutines and the collector, to be loaded into a host before ours: two Go runtimes
// in one process share signal handlers, which weft has to survive.
func Second(root, out string, log io.Writer) error {
	return run(root, log, []string{"CGO_ENABLED=1"}, "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-o", out, "./internal/link/second")
}
