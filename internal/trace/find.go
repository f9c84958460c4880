package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Suffix is that of the recorder's files.
const Suffix = ".rec"

// Find lists the files that are named, and those of the recorder in folders that
// are named, each once.
func Find(names []string) ([]string, error) {
	var paths []string
	seen := map[string]bool{}
	add := func(path string) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			paths = append(paths, path)
		}
	}
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			add(name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		some := false
		for _, e := range entries {
			// One that begins with a dot is not whole yet.
			if strings.HasSuffix(e.Name(), Suffix) && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
				add(filepath.Join(name, e.Name()))
				some = true
			}
		}
		if !some {
			return nil, fmt.Errorf("%s holds no file weft-*%s: is it the folder of WEFT_PROFILE_DIR, and was WEFT_PROFILE=trace set for the job?", name, Suffix)
		}
	}
	return paths, nil
}
