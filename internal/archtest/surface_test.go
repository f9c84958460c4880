package archtest

import (
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// forTests are exports of transport that only tests use, and why they may.
var forTests = map[string]string{
	"transport.Core.Close":                 "the library's core lives as long as its process, those of tests do not",
	"transport/fastpath.Comm.Hold":         "tests meet a gate that is held, as it is for moments only",
	"transport/fastpath.Stats.Announced":   "a counter may be read by a test alone",
	"transport/fastpath.Stats.Coalesced":   "a counter may be read by a test alone",
	"transport/rdma.AlgoRing":              "as NCCL numbers them",
	"transport/rdma.ProtoLL":               "as NCCL numbers them",
	"transport/rdma.ProtoLL128":            "as NCCL numbers them",
	"transport/rdma.ProtoSimple":           "as NCCL numbers them",
	"transport/verbs/ibv.WithoutMLX5":      "internal/fakeibv is a libibverbs without libmlx5",
	"transport/verbs/machine.Machine.Root": "internal/fakeibv describes other machines",
	"transport/verbs/mr.Region.How":        "by which rung of the ladder a card took memory, which no line of the log says",
}

// An export that only tests use opens what a package keeps shut. A test of its insides belongs into the package, and reaches
// them by its export_test.go; any other looks at what the package does.
func TestExportsAreNotForTests(t *testing.T) {
	s := load(t)
	seen := map[string]bool{}
	for place, e := range s.exports {
		u := s.users[place]
		if u.others || !u.otherTests && (u.own || !u.ownTests) || s.inForm(e.object) {
			continue
		}
		if seen[e.name] = true; forTests[e.name] == "" {
			t.Errorf("%s is exported, and only tests use it", e.name)
		}
	}
	for name := range forTests {
		if !seen[name] {
			t.Errorf("forTests names %s, which is gone, or which not only tests use", name)
		}
	}
}

// surface is what the packages of transport export, by where it is declared: a package that is compiled with its tests has
// objects of its own for the same things.
type surface struct {
	exports map[string]export
	users   map[string]users
	spoken  map[*types.TypeName]bool // types of what others use
	asked   map[*types.Interface]bool
	called  map[types.Object]bool // by an interface
}

type export struct {
	name   string // with its folder
	object types.Object
}

// users says who uses something: its own package or others.
type users struct{ own, others, ownTests, otherTests bool }

func load(t *testing.T) *surface {
	t.Helper()
	all, err := packages.Load(&packages.Config{Dir: root, Tests: true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	s := &surface{map[string]export{}, map[string]users{}, map[*types.TypeName]bool{}, map[*types.Interface]bool{}, map[types.Object]bool{}}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Error(e)
		}
		if within(p.PkgPath, "weft/transport") && p.ID == p.PkgPath {
			s.declares(p)
		}
	}
	if len(s.exports) == 0 {
		t.Fatal("nothing is exported")
	}
	for _, p := range all {
		s.uses(p)
	}
	for _, p := range all {
		s.calls(p)
	}
	return s
}

func place(p *packages.Package, o types.Object) string { return p.Fset.Position(o.Pos()).String() }

// declares takes in a package's exports.
func (s *surface) declares(p *packages.Package) {
	add := func(o types.Object, owner string) {
		if o.Exported() && !generated(p.Fset.Position(o.Pos()).Filename) {
			s.exports[place(p, o)] = export{strings.TrimPrefix(p.PkgPath, "weft/") + "." + owner + o.Name(), o}
		}
	}
	for _, o := range named(p) {
		add(o, "")
		t, is := o.Type().(*types.Named)
		if _, declares := o.(*types.TypeName); !is || !declares {
			continue
		}
		for m := range t.Methods() {
			add(m, o.Name()+".")
		}
		if st, is := t.Underlying().(*types.Struct); is {
			for f := range st.Fields() {
				if !f.Embedded() {
					add(f, o.Name()+".")
				}
			}
		}
	}
}

// named are the package's objects.
func named(p *packages.Package) (all []types.Object) {
	for _, name := range p.Types.Scope().Names() {
		all = append(all, p.Types.Scope().Lookup(name))
	}
	return all
}

// uses takes in what a package uses; it may be one with tests.
func (s *surface) uses(p *packages.Package) {
	path := strings.TrimSuffix(p.PkgPath, "_test")
	use := func(at token.Pos, o types.Object) {
		switch generic := o.(type) {
		case *types.Var:
			o = generic.Origin()
		case *types.Func:
			o = generic.Origin()
		}
		e, is := s.exports[place(p, o)]
		if !is {
			return
		}
		u, own := s.users[place(p, o)], o.Pkg().Path() == path
		test := strings.HasSuffix(p.Fset.Position(at).Filename, "_test.go") || slices.Contains(tools, path)
		u.own = u.own || own && !test
		u.others = u.others || !own && !test
		u.ownTests = u.ownTests || own && test
		u.otherTests = u.otherTests || !own && test
		s.users[place(p, o)] = u
		if u.others {
			s.speaks(e.object.Type())
		}
	}
	for ident, o := range p.TypesInfo.Uses {
		if o.Pkg() != nil {
			use(ident.Pos(), o)
		}
	}
	if p.ID != p.PkgPath {
		return
	}
	for _, of := range p.TypesInfo.Types {
		if of.Type == nil {
			continue
		}
		if i, is := of.Type.Underlying().(*types.Interface); is {
			s.asked[i] = true
		}
	}
}

// speaks notes the types by which something that others use is known to them.
func (s *surface) speaks(t types.Type) {
	switch t := t.(type) {
	case *types.Named:
		s.spoken[t.Obj()] = true
		for a := range t.TypeArgs().Types() {
			s.speaks(a)
		}
	case *types.Signature:
		for _, all := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range all.Variables() {
				s.speaks(v.Type())
			}
		}
	case *types.Map:
		s.speaks(t.Key())
		s.speaks(t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		s.speaks(t.Elem())
	}
}

// calls takes in the methods by which the package's types are what somebody asks for: their own, and those that they have
// of what they embed.
func (s *surface) calls(p *packages.Package) {
	if p.ID != p.PkgPath {
		return
	}
	for _, o := range named(p) {
		if _, is := o.(*types.TypeName); !is || types.IsInterface(o.Type()) {
			continue
		}
		t := types.NewPointer(o.Type())
		for i := range s.asked {
			if !types.Implements(t, i) {
				continue
			}
			for m := range i.Methods() {
				found, _, _ := types.LookupFieldOrMethod(t, false, m.Pkg(), m.Name())
				s.called[found] = true
			}
		}
	}
}

// inForm reports whether something is exported for its form: the type of what others use, a method that somebody calls by
// an interface, a value of an enumeration.
func (s *surface) inForm(o types.Object) bool {
	switch o := o.(type) {
	case *types.TypeName:
		return s.spoken[o]
	case *types.Func:
		return s.called[o]
	case *types.Const:
		_, enumerated := o.Type().(*types.Named)
		return enumerated
	}
	return false
}
