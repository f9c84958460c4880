package parse

import (
	"sort"
	"strings"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// specs is what stands before the declarators of a declaration.
type specs struct {
	typ     *model.Type
	typedef bool
	align   int64 // of _Alignas; 0: none
}

// basic are the arithmetic types, by their sorted keywords, with one spelling
// for all orders and synonyms. char has no portable sign: it is of use behind
// a pointer only, which is all that the headers do with it.
var basic = map[string]model.Type{
	"void":                   {Kind: model.Void, Name: "void"},
	"_Bool":                  {Kind: model.Bool, Name: "bool", Size: 1},
	"char":                   {Kind: model.Int, Name: "char", Size: 1},
	"char signed":            {Kind: model.Int, Name: "signed char", Size: 1},
	"char unsigned":          {Kind: model.Uint, Name: "unsigned char", Size: 1},
	"short":                  {Kind: model.Int, Name: "short", Size: 2},
	"int short":              {Kind: model.Int, Name: "short", Size: 2},
	"short unsigned":         {Kind: model.Uint, Name: "unsigned short", Size: 2},
	"int short unsigned":     {Kind: model.Uint, Name: "unsigned short", Size: 2},
	"int":                    {Kind: model.Int, Name: "int", Size: 4},
	"signed":                 {Kind: model.Int, Name: "int", Size: 4},
	"int signed":             {Kind: model.Int, Name: "int", Size: 4},
	"unsigned":               {Kind: model.Uint, Name: "unsigned int", Size: 4},
	"int unsigned":           {Kind: model.Uint, Name: "unsigned int", Size: 4},
	"long":                   {Kind: model.Int, Name: "long", Size: 8},
	"int long":               {Kind: model.Int, Name: "long", Size: 8},
	"long unsigned":          {Kind: model.Uint, Name: "unsigned long", Size: 8},
	"int long unsigned":      {Kind: model.Uint, Name: "unsigned long", Size: 8},
	"long long":              {Kind: model.Int, Name: "long long", Size: 8},
	"int long long":          {Kind: model.Int, Name: "long long", Size: 8},
	"long long unsigned":     {Kind: model.Uint, Name: "unsigned long long", Size: 8},
	"int long long unsigned": {Kind: model.Uint, Name: "unsigned long long", Size: 8},
	"float":                  {Kind: model.Float, Name: "float", Size: 4},
	"double":                 {Kind: model.Float, Name: "double", Size: 8},
}

// gathered collects specifiers before they make a type.
type gathered struct {
	words []string
	made  *model.Type
	konst bool
	align int64
}

func (b *builder) declSpecs(n *cc.DeclarationSpecifiers, own bool, doc string) specs {
	var g gathered
	var s specs
	first := cc.Node(n)
	for ; n != nil; n = n.DeclarationSpecifiers {
		switch n.Case {
		case cc.DeclarationSpecifiersStorage:
			switch n.StorageClassSpecifier.Case {
			case cc.StorageClassSpecifierTypedef:
				s.typedef = true
			case cc.StorageClassSpecifierExtern, cc.StorageClassSpecifierStatic:
			default:
				refuse(n, "storage class %s in a header", cc.NodeSource(n.StorageClassSpecifier))
			}
		case cc.DeclarationSpecifiersTypeSpec:
			b.typeSpec(&g, n.TypeSpecifier, own, doc)
		case cc.DeclarationSpecifiersTypeQual:
			g.konst = g.konst || n.TypeQualifier.Case == cc.TypeQualifierConst
		case cc.DeclarationSpecifiersAlignSpec:
			b.alignSpec(&g, n.AlignmentSpecifier)
		}
	}
	s.typ, s.align = b.made(&g, first), g.align
	return s
}

func (b *builder) qualSpecs(n *cc.SpecifierQualifierList, at cc.Node, own bool) specs {
	var g gathered
	for ; n != nil; n = n.SpecifierQualifierList {
		switch n.Case {
		case cc.SpecifierQualifierListTypeSpec:
			b.typeSpec(&g, n.TypeSpecifier, own, "")
		case cc.SpecifierQualifierListTypeQual:
			g.konst = g.konst || n.TypeQualifier.Case == cc.TypeQualifierConst
		case cc.SpecifierQualifierListAlignSpec:
			b.alignSpec(&g, n.AlignmentSpecifier)
		}
	}
	return specs{typ: b.made(&g, at), align: g.align}
}

func (b *builder) alignSpec(g *gathered, n *cc.AlignmentSpecifier) {
	if n.Case != cc.AlignmentSpecifierExpr {
		refuse(n, "_Alignas wants a number here")
	}
	a, ok := constant(n.ConstantExpression)
	if !ok || a <= 0 || a > 4096 || a&(a-1) != 0 {
		refuse(n, "_Alignas wants a power of two up to 4096")
	}
	g.align = max(g.align, a)
}

func (b *builder) typeSpec(g *gathered, n *cc.TypeSpecifier, own bool, doc string) {
	set := func(t *model.Type) {
		if g.made != nil || len(g.words) > 0 {
			refuse(n, "two types in one declaration: is a ; missing?")
		}
		g.made = t
	}
	switch n.Case {
	case cc.TypeSpecifierTypeName:
		name := n.Token.SrcStr()
		t := b.typedefs[name]
		if t == nil {
			refuse(n, "%s is not declared", name)
		}
		set(t)
	case cc.TypeSpecifierStructOrUnion:
		set(b.recordSpec(n.StructOrUnionSpecifier, own, doc))
	case cc.TypeSpecifierEnum:
		set(b.enumSpec(n.EnumSpecifier, own, doc))
	default:
		if g.made != nil {
			refuse(n, "two types in one declaration: is a ; missing?")
		}
		g.words = append(g.words, cc.NodeSource(n))
	}
}

// made settles the type that the specifiers at n name.
func (b *builder) made(g *gathered, n cc.Node) *model.Type {
	var t model.Type
	switch {
	case g.made != nil:
		t = *g.made
		if t.Record != nil { // may have been completed since the typedef
			t.Size, t.Align = t.Record.Size, t.Record.Align
		}
	case len(g.words) == 0:
		refuse(n, "no type: is the type's name declared before this line?")
	default:
		words := append([]string(nil), g.words...)
		sort.Strings(words)
		known, ok := basic[strings.Join(words, " ")]
		if !ok {
			refuse(n, "type %q is not modelled", strings.Join(g.words, " "))
		}
		t = known
		t.Align = t.Size
	}
	t.Const = t.Const || g.konst
	return &t
}

// constant returns the value of an integer constant expression.
func constant(e cc.ExpressionNode) (int64, bool) {
	if e == nil {
		return 0, false
	}
	switch v := e.Value().(type) {
	case cc.Int64Value:
		return int64(v), true
	case cc.UInt64Value:
		return int64(v), v <= 1<<63-1
	}
	return 0, false
}
