package build

import "fmt"

// ChainedNewest is the newest version of a profiler that tools/host/testdata/chained.c is written for, by hand.
const ChainedNewest = 7

// Chained compiles chained.c for a version: a profiler of another library, which writes down what it is told.
func Chained(version int) (string, error) {
	return Plugin("tools/host/testdata/chained.c", "-O1", "-Wall", "-Wextra", "-Werror", fmt.Sprintf("-DV=%d", version), fmt.Sprintf("-DHEADER=\"profiler_v%d.h\"", version))
}
