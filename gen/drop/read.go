package drop

import (
	"errors"
	"fmt"
	"slices"

	"weft/gen/model"
	"weft/gen/parse"
)

// prelude is what NCCL's own headers take for granted.
const prelude = "#include <stdbool.h>\n#include <stdint.h>\n#include <sys/types.h>\n"

// parse reads the source on every architecture. A header that merely defines
// something useful, but cannot be read, is left out: what it defined is then
// taken from ours.
func (s *source) parse(ours *model.Unit) (*model.Unit, error) {
	var u *model.Unit
	for _, arch := range parse.Arches {
		for {
			plan := s.order(ours)
			v, err := parse.Headers(parse.Options{
				FS: tree{s}, System: newSystem(plan), Headers: plan.headers, Arch: arch,
				Prelude: prelude, Library: true,
			})
			if err == nil {
				u = v
				break
			}
			if !s.ban(err) {
				return nil, fmt.Errorf("drop: read the source:\n%w", err)
			}
		}
	}
	return u, nil
}

// ban empties the header at fault, unless it defines a table to import. It
// reports whether that changed anything.
func (s *source) ban(err error) bool {
	var refused parse.Refusals
	if !errors.As(err, &refused) || len(refused) == 0 {
		return false
	}
	fault := s.find(refused[0].Pos.File)
	if fault == "" || s.banned[fault] || slices.Contains(s.tables, fault) {
		return false
	}
	s.banned[fault] = true
	return true
}
