package emit

import (
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// span are the first and the newest exported version of a family; 0: it has none.
func span(p *plan.Plan, f model.Family) (first, newest int) {
	var all []int
	for _, t := range p.Tables {
		if t.Family == f {
			all = append(all, t.Version)
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	return slices.Min(all), slices.Max(all)
}

// tables emits abi/zz_tables.go: which versions there are, and which events the
// profiler can be asked for.
func tables(p *plan.Plan, out tree) error {
	f := goFile("abi")
	f.Comment("The first and the newest table of each family.")
	f.Const().DefsFunc(func(g *jen.Group) {
		for _, fam := range model.Families {
			if first, newest := span(p, fam); newest > 0 {
				g.Id(fam.Go() + "First").Op("=").Lit(first)
				g.Id(fam.Go() + "Newest").Op("=").Lit(newest)
			}
		}
	})
	if events := eventNames(p.Unit); len(events) > 0 {
		f.Comment("ProfilerEvents are NCCL's names of the types of events, by the number of their bit.")
		f.Var().Id("ProfilerEvents").Op("=").Index(jen.Op("...")).String().Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, events...)
	}
	text, err := render(f)
	out["abi/zz_tables.go"] = text
	return err
}

// eventNames are the bits of the activation mask: the enumeration without a name
// in profiler_event.h.
func eventNames(u *model.Unit) (names []jen.Code) {
	for _, e := range u.Enums {
		if e.Name != "" || path.Base(e.Pos.File) != "profiler_event.h" {
			continue
		}
		for _, v := range e.Values {
			names = append(names, jen.Lit(bits.TrailingZeros64(uint64(v.Value))).Op(":").Lit(strings.TrimPrefix(v.Name, "ncclProfile")))
		}
	}
	return names
}

// spans says which tables there are, for people.
func spans(p *plan.Plan) string {
	var all []string
	for _, fam := range model.Families {
		if first, newest := span(p, fam); newest > 0 {
			all = append(all, fmt.Sprintf("%s v%d to v%d", fam, first, newest))
		}
	}
	return strings.Join(all, ", ")
}
