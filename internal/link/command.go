package link

import "io"

// Command builds the program weft, which has no C in it.
func Command(root, out string, log io.Writer) error {
	return run(root, log, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+stamp(root), "-o", out, "./tools/weft")
}
