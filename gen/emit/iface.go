package emit

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"weft/gen/model"
	"weft/gen/plan"
)

// inGo reports whether the Go core has the function.
func inGo(c *plan.Core) bool { return c.Served == plan.Slow || c.Served == plan.Unserved }

// interfaces emits abi/zz_iface_FAMILY.go: the arguments of every function,
// the canonical interface, and defaults that return "unsupported".
func interfaces(p *plan.Plan, out tree) error {
	for _, fam := range model.Families {
		name := fam.Go()
		f := goFile("abi")
		var cores []*plan.Core
		for _, c := range p.Family(fam) {
			if inGo(c) {
				cores = append(cores, c)
			}
		}
		if len(cores) == 0 {
			continue
		}
		for _, c := range cores {
			f.Commentf("%s are the arguments of %s.%s.", argsName(c), fam, c.Slot)
			f.Type().Id(argsName(c)).StructFunc(func(g *jen.Group) {
				for _, q := range c.Params {
					g.Id(goName(q.Name)).Add(argType(q))
				}
			})
		}
		defaults := name + "Defaults"
		f.Commentf("%s is the canonical interface of the %s tables, that of the newest header. Embed %s to implement it, so that a newer header breaks nothing.", name, fam, defaults)
		f.Type().Id(name).InterfaceFunc(func(g *jen.Group) {
			for _, c := range cores {
				g.Id(goName(c.Slot)).Params(jen.Op("*").Id(argsName(c))).Error()
			}
		})
		f.Commentf("%s returns ErrUnsupported from every function.", defaults)
		f.Type().Id(defaults).Struct()
		f.Var().Id("_").Id(name).Op("=").Id(defaults).Values()
		for _, c := range cores {
			f.Commentf("%s is not supported.", goName(c.Slot))
			f.Func().Params(jen.Id(defaults)).Id(goName(c.Slot)).Params(jen.Op("*").Id(argsName(c))).Error().Block(
				jen.Return(jen.Id("unsupported").Call(jen.Lit(callName(c.Family, c.Slot)))),
			)
		}
		text, err := render(f)
		if err != nil {
			return fmt.Errorf("interface %s: %w", name, err)
		}
		out["abi/zz_iface_"+lower(fam)+".go"] = text
	}
	return nil
}
