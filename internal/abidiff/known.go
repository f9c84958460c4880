package abidiff

import (
	"fmt"
	"sync"

	"weft/gen/model"
	"weft/gen/parse"
	"weft/headers"
)

// known are the headers of this build.
var known = sync.OnceValues(func() (*model.Unit, error) { return parse.NCCL(headers.FS) })

// table is a table of some headers.
type table struct {
	*model.Table
	unit *model.Unit
	ours bool
}

// find is the table of that version among the headers of this build.
func find(f model.Family, version int) (*table, error) {
	u, err := known()
	if err != nil {
		return nil, err
	}
	if t := u.Table(f, version); t != nil {
		return &table{t, u, true}, nil
	}
	all := versions(u, f)
	return nil, fmt.Errorf("this build has no %s v%d: it has v%d to v%d; of another one name a header that declares it", f, version, all[0], all[len(all)-1])
}

// versions are those of a family in u, oldest first.
func versions(u *model.Unit, f model.Family) (list []int) {
	for _, t := range u.Tables {
		if t.Family == f {
			list = append(list, t.Version)
		}
	}
	return list
}
