package trace

import (
	"fmt"

	"weft/internal/owner"
)

const suffix = ".rec" // of the recorder's files

// Load reads the files that are named, and those of folders that are named. What
// is wrong with single files is in bad; err is for a name that leads to none.
func Load(names []string) (files []*File, bad []error, err error) {
	paths, empty, err := owner.Find(names, suffix)
	if err != nil {
		return nil, nil, err
	}
	if len(empty) > 0 {
		return nil, nil, fmt.Errorf("%s holds no file weft-*%s: is it the folder of WEFT_PROFILE_DIR, and was WEFT_PROFILE=trace set for the job?", empty[0], suffix)
	}
	seen := map[[16]byte]string{}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if first, twice := seen[f.Header.Process]; twice {
			bad = append(bad, fmt.Errorf("%s is of the same process as %s, and left out", path, first))
			continue
		}
		seen[f.Header.Process] = path
		files = append(files, f)
	}
	return files, bad, nil
}
