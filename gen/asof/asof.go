// Package asof gives the generator's tests our headers as they were when the
// tests were written, so that they can name versions and count on their text
// whatever has been imported since.
package asof

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"testing/fstest"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/parse"
)

// The newest versions that tests name. Versions never change, so that nothing
// is lost by not moving on.
const (
	Net      = 12
	Profiler = 6
	Tuner    = 6
)

// Headers copies a headers folder without what is newer.
func Headers(headers fs.FS) (fstest.MapFS, error) {
	old := fstest.MapFS{}
	err := fs.WalkDir(headers, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || newer(path.Base(p)) {
			return err
		}
		data, err := fs.ReadFile(headers, p)
		old[p] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("older headers: %w", err)
	}
	unit, err := parse.NCCL(old)
	if err != nil {
		return nil, fmt.Errorf("older headers: %w", err)
	}
	old["LOCK"] = &fstest.MapFile{Data: lock.Format(lock.Of(unit))}
	return old, nil
}

func newer(header string) bool {
	m := model.TableHeader.FindStringSubmatch(header)
	if m == nil {
		return false
	}
	v, err := strconv.Atoi(m[2])
	return err != nil || v > map[string]int{"net": Net, "profiler": Profiler, "tuner": Tuner}[m[1]]
}
