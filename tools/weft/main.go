// Command weft runs, judges and measures network plugins for NCCL through the C
// host process weft-host; it contains no C itself.
package main

import (
	"context"
	"os"

	"weft/internal/lab/frame"
	"weft/internal/lab/guest"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == frame.Argument {
		os.Exit(guest.Main()) // in a machine of weft lab
	}
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
