package emit

import (
	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// served emits what the matrix says, for `weft abi`: how each function of each
// table is served.
func served(p *plan.Plan, out tree) error {
	var rows []jen.Code
	for _, f := range model.Families {
		tables, names, cells := slotsOf(p, f)
		for _, n := range names {
			for _, s := range stretches(tables, cells[n]) {
				rows = append(rows, jen.Values(jen.Lit(string(f)), jen.Lit(n), jen.Lit(s.lo), jen.Lit(s.hi), jen.Lit(s.what)))
			}
		}
	}
	f := goFile("abidiff")
	f.Comment("served is how weft serves the functions of its tables.")
	f.Var().Id("served").Op("=").Index().Id("service").Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, rows...)
	text, err := render(f)
	out["internal/abidiff/zz_served.go"] = text
	return err
}
