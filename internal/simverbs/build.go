package simverbs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"weft/internal/build"
)

// Dist builds the library, its libmlx5 and the conformance program once for all
// tests of a tree, and returns their folder.
func Dist() (string, error) {
	stamp, err := build.Once("simverbs.built", func(root, out string) error {
		cmd := exec.Command("make", "-s", "SIM_DIST="+filepath.Dir(out), "simverbs")
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make simverbs: %w\n%s", err, text)
		}
		return os.WriteFile(out, nil, 0o644)
	}, "tools/simverbs", "headers/verbs", "mk")
	return filepath.Dir(stamp), err
}
