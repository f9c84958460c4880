package parse

import (
	"sort"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// builder turns a syntax tree into a unit. It reads types from the syntax, so
// that spellings and qualifiers survive, computes the layout itself, and
// requires cc's type checker to agree with it.
type builder struct {
	opts     Options
	over     *overlay
	unit     *model.Unit
	refused  Refusals
	comments map[string]*comments

	typedefs map[string]*model.Type
	records  map[string]*model.Record // by "struct tag" or "union tag"
	enums    map[string]*model.Enum   // by "enum tag"
	names    map[string]model.Pos     // functions and enumerators
}

func build(o Options) (*builder, error) {
	over := newOverlay(o)
	if err := checkInclusions(o, over); err != nil {
		return nil, err
	}
	ast, err := translate(o, over)
	if err != nil {
		return nil, err
	}
	b := &builder{
		opts: o, over: over, unit: &model.Unit{},
		comments: map[string]*comments{},
		typedefs: map[string]*model.Type{},
		records:  map[string]*model.Record{},
		enums:    map[string]*model.Enum{},
		names:    map[string]model.Pos{},
	}
	for tu := ast.TranslationUnit; tu != nil && len(b.refused) < maxRefusals; tu = tu.TranslationUnit {
		b.guard(func() { b.external(tu.ExternalDeclaration) })
	}
	b.macros(ast)
	b.guard(func() { b.tables() })
	if len(b.refused) > 0 {
		sort.SliceStable(b.refused, func(i, j int) bool { return b.before(b.refused[i].Pos, b.refused[j].Pos) })
		return nil, b.refused
	}
	return b, nil
}

// guard runs f and collects a refusal raised in it.
func (b *builder) guard(f func()) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Refusal:
			b.refused = append(b.refused, p)
		default:
			panic(p)
		}
	}()
	f()
}

// own reports whether something was declared in the headers being parsed,
// rather than in the sysroot or the prelude.
func (b *builder) own(p model.Pos) bool {
	_, ok := b.over.opened[p.File]
	return ok
}

// before orders positions by the inclusion of their files, then by line.
func (b *builder) before(p, q model.Pos) bool {
	if p.File != q.File {
		return b.over.opened[p.File] < b.over.opened[q.File]
	}
	if p.Line != q.Line {
		return p.Line < q.Line
	}
	return p.Col < q.Col
}

// forbidden are tokens that change a layout or a meaning behind the model's
// back. cc ignores or half-knows most of them.
var forbidden = map[string]string{
	"__attribute__": "an attribute may change the layout",
	"__declspec":    "an attribute may change the layout",
	"_Atomic":       "atomic types have no layout that other languages share",
	"volatile":      "volatile is not modelled",
	"__volatile__":  "volatile is not modelled",
	"restrict":      "restrict is not modelled",
	"__restrict":    "restrict is not modelled",
	"__restrict__":  "restrict is not modelled",
	"_Complex":      "complex numbers are not modelled",
	"_Alignas":      "alignment may change the layout",
	"typeof":        "typeof is not modelled",
	"__typeof__":    "typeof is not modelled",
	"asm":           "assembler names are not modelled",
	"__asm__":       "assembler names are not modelled",
}

func (b *builder) external(x *cc.ExternalDeclaration) {
	own := b.own(position(x))
	switch x.Case {
	case cc.ExternalDeclarationFuncDef:
		if own && !b.opts.Library {
			refuse(x, "a function body in a header")
		}
	case cc.ExternalDeclarationDecl:
		if own {
			b.vet(x)
		}
		b.declaration(x.Declaration, own)
	default:
		if own {
			refuse(x, "neither a declaration nor a type")
		}
	}
}

func (b *builder) vet(x *cc.ExternalDeclaration) {
	if b.opts.Library && !definesType(x.Declaration) {
		return
	}
	for _, t := range cc.NodeTokens(x) {
		why, bad := forbidden[t.SrcStr()]
		if bad && !(b.opts.Library && t.SrcStr() == "_Alignas") {
			refuse(t, "%s: %s", t.SrcStr(), why)
		}
	}
}

// definesType reports whether a declaration makes a type: what others say of
// functions does not change a layout.
func definesType(d *cc.Declaration) bool {
	if d == nil {
		return false
	}
	for s := d.DeclarationSpecifiers; s != nil; s = s.DeclarationSpecifiers {
		switch {
		case s.Case == cc.DeclarationSpecifiersStorage && s.StorageClassSpecifier.Case == cc.StorageClassSpecifierTypedef:
			return true
		case s.Case == cc.DeclarationSpecifiersTypeSpec:
			ts := s.TypeSpecifier
			if ts.Case == cc.TypeSpecifierEnum || ts.Case == cc.TypeSpecifierStructOrUnion &&
				ts.StructOrUnionSpecifier.Case == cc.StructOrUnionSpecifierDef {
				return true
			}
		}
	}
	return false
}

func (b *builder) declaration(d *cc.Declaration, own bool) {
	switch d.Case {
	case cc.DeclarationAssert:
		return
	case cc.DeclarationDecl:
	default:
		refuse(d, "not a C declaration")
	}
	if own && d.Token.SrcStr() != ";" {
		refuse(d, "the declaration does not end in ;")
	}
	if d.DeclarationSpecifiers == nil {
		refuse(d.Token, "nothing is declared: is a ; too many, or a type not declared?")
	}
	doc := b.doc(position(d), position(d.Token))
	specs := b.declSpecs(d.DeclarationSpecifiers, own, doc)
	for l := d.InitDeclaratorList; l != nil; l = l.InitDeclaratorList {
		b.declared(l.InitDeclarator.Declarator, specs, own, doc)
	}
}

// declared enters one declarator of a declaration: a typedef, a prototype, or
// a variable.
func (b *builder) declared(d *cc.Declarator, s specs, own bool, doc string) {
	name, t := b.declarator(s.typ, d)
	switch {
	case s.typedef:
		b.typedef(d, name, t, own, doc)
	case t.Kind == model.Function:
		if !own {
			return
		}
		if p, dup := b.names[name]; dup && !b.opts.Library {
			refuse(d.NameTok(), "%s is declared twice, first at %v", name, p)
		} else if dup {
			return
		}
		b.names[name] = position(d.NameTok())
		f := *t.Func
		f.Name, f.Pos, f.Doc = name, position(d.NameTok()), doc
		b.unit.Funcs = append(b.unit.Funcs, &f)
	case own && !b.opts.Library:
		refuse(d.NameTok(), "a variable, %s, in a header", name)
	}
}

func (b *builder) typedef(d *cc.Declarator, name string, t *model.Type, own bool, doc string) {
	if old, dup := b.typedefs[name]; dup {
		if diff := compare(old, named(t, name)); diff != "" {
			refuse(d.NameTok(), "typedef %s is declared before, as %s", name, old)
		}
		return
	}
	written := t
	if r := t.Record; r != nil && r.Name == "" || r != nil && r.Name == r.TagName() && t.Name == r.Name {
		if r.Name == "" && own {
			b.unit.Records = append(b.unit.Records, r)
		}
		r.Name = name
		if r.Doc == "" {
			r.Doc = doc
		}
		written = named(t, name)
	}
	if e := t.Enum; e != nil && (e.Name == "" || e.Name == "enum "+e.Tag && t.Name == e.Name) {
		e.Name = name
		written = named(t, name)
	}
	b.typedefs[name] = named(t, name)
	if own {
		b.unit.Typedefs = append(b.unit.Typedefs, &model.Typedef{Name: name, Type: written, Doc: doc, Pos: position(d.NameTok())})
	}
}

// named returns t under the name of a typedef.
func named(t *model.Type, name string) *model.Type {
	n := *t
	n.Name = name
	return &n
}
