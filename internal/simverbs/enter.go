package simverbs

import (
	"os"
	"path/filepath"
	"strings"
)

// Enter has this process live in the world, once, and returns the path of the
// library, which it may then open.
func (w World) Enter() (lib string, err error) {
	dist, err := Dist()
	if err != nil {
		return "", err
	}
	env, err := w.Env(dist, "")
	if err != nil {
		return "", err
	}
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k != "LD_LIBRARY_PATH" {
			os.Setenv(k, v) // the library reads C's environment, which this reaches too
		}
	}
	return filepath.Join(dist, "libibverbs.so.1"), nil
}
