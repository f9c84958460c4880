package plan

import (
	"slices"

	"weft/gen/model"
)

// required lists the table's parameters that must not be NULL: every pointer that the core or an adapter reads or writes
// through, but for those that a rule calls nullable.
func (p *planner) required(t *model.Table, s *Slot) {
	fam := string(t.Family)
	for _, q := range s.Func.Params {
		name := q.Name
		if r := p.rules.Param("rename", fam, t.Version, s.Name, name); r != nil {
			name = r.Words[0]
		}
		if q.Type.Kind != model.Pointer || q.Type.IsFuncPtr() {
			continue
		}
		if q.Type.IsPtrTo(model.Void) && p.rules.Param("memory", fam, t.Version, s.Name, name) == nil {
			continue // a value
		}
		if p.rules.Param("nullable", fam, t.Version, s.Name, name) == nil {
			s.Required = append(s.Required, q.Name)
		}
	}
}

// Requires reports whether the parameter must not be NULL.
func (s *Slot) Requires(param string) bool { return slices.Contains(s.Required, param) }
