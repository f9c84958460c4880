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

// parse reads the source. A header that merely defines something useful, but
// cannot be read, is left out: what it defined is then taken from ours. One
// architecture is enough: what is imported is parsed again on all.
func (s *source) parse(ours *model.Unit) (*model.Unit, error) {
	for {
		plan := s.order(ours)
		u, err := parse.Headers(parse.Options{
			FS: tree{s}, System: newSystem(plan), Headers: plan.headers, Arch: parse.Arches[0],
			Prelude: prelude, Library: true,
		})
		if err == nil {
			return u, nil
		}
		if !s.ban(err) {
			return nil, fmt.Errorf("drop: read the source:\n%w", err)
		}
	}
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
