package parse

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"

	"github.com/google/go-cmp/cmp"
	"weft/gen/model"
)

// tables finds the plugin tables among the records and, unless the headers are
// merely read, checks that each is what a plugin can be built for: a name, then
// functions.
func (b *builder) tables() {
	for _, r := range b.unit.Records {
		m := model.TableType.FindStringSubmatch(r.Name)
		if m == nil {
			continue
		}
		v, err := strconv.Atoi(m[2])
		if err != nil {
			panic(&Refusal{Pos: r.Pos, What: r.Name + ": version out of range"})
		}
		for _, f := range model.Families {
			if f.TypeName(v) == r.Name {
				b.unit.Tables = append(b.unit.Tables, &model.Table{Family: f, Version: v, Symbol: f.Symbol(v), Record: r, Header: r.Pos.File})
			}
		}
		if b.opts.Library {
			continue
		}
		for i, f := range r.Fields {
			if what := entry(i, f); what != "" {
				b.refused = append(b.refused, &Refusal{Pos: f.Pos, What: fmt.Sprintf("%s.%s: %s", r.Name, f.Name, what)})
			}
		}
	}
	rank := map[model.Family]int{}
	for i, f := range model.Families {
		rank[f] = i
	}
	sort.SliceStable(b.unit.Tables, func(i, j int) bool {
		p, q := b.unit.Tables[i], b.unit.Tables[j]
		if p.Family != q.Family {
			return rank[p.Family] < rank[q.Family]
		}
		return p.Version < q.Version
	})
}

// entry says what is wrong with member i of a table, if anything.
func entry(i int, f *model.Field) string {
	if i == 0 {
		if f.Name != "name" || f.Type.String() != "const char*" {
			return "a table begins with const char* name"
		}
		return ""
	}
	if !f.Type.IsFuncPtr() {
		return "a table holds pointers to functions"
	}
	fn := f.Type.Elem.Func
	if fn.Result.Name != "ncclResult_t" {
		return "returns " + fn.Result.String() + ", not ncclResult_t"
	}
	if fn.Variadic {
		return "takes a variable number of arguments"
	}
	for n, p := range fn.Params {
		if p.Name == "" {
			return fmt.Sprintf("parameter %d has no name: versions are matched by name", n+1)
		}
	}
	return ""
}

// compare returns the difference of two values of the model. cmp is slow on
// graphs with shared parts, so it is asked only what the difference is.
func compare(a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}
