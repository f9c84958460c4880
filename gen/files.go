package main

import (
	"errors"
	"fmt"
	"io/fs"

	"weft/gen/drop"
	"weft/gen/emit"
	"weft/gen/lock"
	"weft/gen/output"
	"weft/gen/parse"
	"weft/gen/view"
)

// everything returns all generated files of the repository at root. Headers
// that contradict headers/LOCK stop it.
func everything(root fs.FS) ([]output.File, error) {
	headers, err := fs.Sub(root, "headers")
	if err != nil {
		return nil, fmt.Errorf("open headers: %w", err)
	}
	unit, err := parse.NCCL(headers)
	if err != nil {
		return nil, err
	}
	drifts, err := drop.Drifts(root)
	if err != nil {
		return nil, err
	}
	old, err := drop.ReadLock(headers)
	if err != nil {
		return nil, err
	}
	lines, err := lock.Merge(old, lock.Of(unit), drifts)
	if err != nil {
		return nil, err
	}
	files := []output.File{{Path: drop.LockPath, Data: lock.Format(lines)}}
	views, err1 := view.Files(root)
	emitted, err2 := emit.Files(unit, root)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return append(append(files, views...), emitted...), nil
}
