package nccl

import (
	"fmt"
	"os"
	"path/filepath"
)

// Env names the folders of built releases, with a colon between them.
const Env = "WEFT_TEST_NCCL"

// Release is a release of NCCL that make nccl-host has built.
type Release struct {
	Dir          string
	Major, Minor int
}

func (r Release) String() string { return filepath.Base(r.Dir) }

// Since says whether the release is major.minor or later.
func (r Release) Since(major, minor int) bool {
	return r.Major > major || r.Major == major && r.Minor >= minor
}

// Releases are those that Env names.
func Releases() ([]Release, error) {
	var list []Release
	for _, dir := range filepath.SplitList(os.Getenv(Env)) {
		r := Release{Dir: dir}
		if _, err := fmt.Sscanf(filepath.Base(dir), "%d.%d", &r.Major, &r.Minor); err != nil {
			return nil, fmt.Errorf("%s: %s is not named after a release: %w", Env, dir, err)
		}
		if _, err := os.Stat(r.Driver()); err != nil {
			return nil, fmt.Errorf("%s: %w (make nccl-host builds it)", Env, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// Driver is the program that is one rank.
func (r Release) Driver() string { return filepath.Join(r.Dir, "driver") }

// LogsToFile says whether the release does with NCCL_DEBUG_FILE what it should: 2.5 waits for itself for ever, 2.13 writes to
// the standard output all the same.
func (r Release) LogsToFile() bool {
	return !(r.Major == 2 && (r.Minor == 5 || r.Minor == 13))
}

// GDRLevel is the setting with which the release uses GPUDirect however far the device is: 2.4 and 2.5 take numbers only.
func (r Release) GDRLevel() string {
	if !r.Since(2, 6) {
		return "NCCL_NET_GDR_LEVEL=5"
	}
	return "NCCL_NET_GDR_LEVEL=SYS"
}
