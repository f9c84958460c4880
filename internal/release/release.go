package release

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"weft/headers"
	"weft/headers/facts"
)

// Release is one release of NCCL, or RCCL on its base.
type Release struct {
	facts.Release
	Code int // 22807 for 2.28.7
	RCCL bool
}

// All are the releases that look for plugins, oldest first.
func All() ([]*Release, error) {
	list, err := facts.Releases(headers.FS)
	if err != nil {
		return nil, err
	}
	var out []*Release
	for _, f := range list {
		code, err := code(f.Release)
		if err != nil {
			return nil, fmt.Errorf("releases: %w", err)
		}
		if len(f.Net) > 0 {
			out = append(out, &Release{Release: f, Code: code})
		}
	}
	return out, nil
}

// Find is the release of that name, with or without its patch number.
func Find(name string) (*Release, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var last *Release
	for _, r := range all {
		if r.Release.Release == name {
			return r, nil
		}
		if strings.HasPrefix(r.Release.Release, name+".") {
			last = r
		}
	}
	if last == nil {
		return nil, fmt.Errorf("there is no NCCL release %q with plugins; known are %s to %s%s", name, all[0].Release.Release, all[len(all)-1].Release.Release, nearest(all, name))
	}
	return last, nil
}

// nearest names the releases between which one that is not known would be.
func nearest(all []*Release, name string) string {
	n, err := code(name)
	i := sort.Search(len(all), func(i int) bool { return all[i].Code > n })
	if err != nil || i == 0 || i == len(all) {
		return ""
	}
	return fmt.Sprintf(", nearest to it %s and %s", all[i-1].Release.Release, all[i].Release.Release)
}

// AMD is RCCL on this release's base.
func (r *Release) AMD() *Release {
	c := *r
	c.RCCL = true
	return &c
}

// String names the release.
func (r *Release) String() string {
	if r.RCCL {
		return "RCCL on " + r.Release.Release
	}
	return "NCCL " + r.Release.Release
}

func code(name string) (int, error) {
	var n [3]int
	for i, s := range strings.SplitN(name, ".", 3) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("%q is not a release", name)
		}
		n[i] = v
	}
	return n[0]*10000 + n[1]*100 + n[2], nil
}
