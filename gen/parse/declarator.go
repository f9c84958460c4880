package parse

import (
	"modernc.org/cc/v4"
	"weft/gen/model"
)

const ptrSize = 8

func pointer(elem *model.Type, konst bool) *model.Type {
	return &model.Type{Kind: model.Pointer, Const: konst, Size: ptrSize, Align: ptrSize, Elem: elem}
}

// pointers wraps base in the stars of p, outermost last.
func pointers(base *model.Type, p *cc.Pointer) *model.Type {
	for ; p != nil; p = p.Pointer {
		if p.Case == cc.PointerBlock {
			refuse(p, "blocks are not C")
		}
		konst := false
		for q := p.TypeQualifiers; q != nil; q = q.TypeQualifiers {
			konst = konst || q.TypeQualifier != nil && q.TypeQualifier.Case == cc.TypeQualifierConst
		}
		base = pointer(base, konst)
	}
	return base
}

// declarator reads a declarator from the outside in.
func (b *builder) declarator(base *model.Type, d *cc.Declarator) (string, *model.Type) {
	t := pointers(base, d.Pointer)
	for dd := d.DirectDeclarator; ; dd = dd.DirectDeclarator {
		switch dd.Case {
		case cc.DirectDeclaratorIdent:
			return dd.Token.SrcStr(), t
		case cc.DirectDeclaratorDecl:
			return b.declarator(t, dd.Declarator)
		case cc.DirectDeclaratorArr:
			t = array(t, dd.AssignmentExpression, dd.Token)
		case cc.DirectDeclaratorFuncParam:
			t = b.function(t, dd.ParameterTypeList)
		case cc.DirectDeclaratorFuncIdent:
			if dd.IdentifierList != nil {
				refuse(dd.Token, "parameters without types: are they declared?")
			}
			t = b.function(t, nil)
		default:
			refuse(dd.Token, "an array length that only a function may have")
		}
	}
}

// abstract reads the declarator of an unnamed parameter.
func (b *builder) abstract(base *model.Type, a *cc.AbstractDeclarator) *model.Type {
	if a == nil {
		return base
	}
	t := pointers(base, a.Pointer)
	for dd := a.DirectAbstractDeclarator; dd != nil; dd = dd.DirectAbstractDeclarator {
		switch dd.Case {
		case cc.DirectAbstractDeclaratorDecl:
			return b.abstract(t, dd.AbstractDeclarator)
		case cc.DirectAbstractDeclaratorArr:
			t = array(t, dd.AssignmentExpression, dd.Token)
		case cc.DirectAbstractDeclaratorFunc:
			t = b.function(t, dd.ParameterTypeList)
		default:
			refuse(dd.Token, "an array length that only a function may have")
		}
	}
	return t
}

// unknownLen marks "[]" until a parameter makes a pointer of it.
const unknownLen = -1

const maxArray = 1 << 24

func array(elem *model.Type, length cc.ExpressionNode, at cc.Node) *model.Type {
	t := &model.Type{Kind: model.Array, Elem: elem, Len: unknownLen, Align: elem.Align}
	if length == nil {
		return t
	}
	n, ok := constant(length)
	if !ok {
		refuse(at, "the array length is not a constant")
	}
	if n <= 0 || n > maxArray {
		refuse(at, "array length %d", n)
	}
	t.Len, t.Size = n, n*elem.Size
	return t
}

func (b *builder) function(result *model.Type, list *cc.ParameterTypeList) *model.Type {
	f := &model.Func{Result: result}
	t := &model.Type{Kind: model.Function, Func: f}
	if list == nil {
		return t
	}
	f.Variadic = list.Case == cc.ParameterTypeListVar
	for l := list.ParameterList; l != nil; l = l.ParameterList {
		p := l.ParameterDeclaration
		base := b.declSpecs(p.DeclarationSpecifiers, b.own(position(p)), "").typ
		param := &model.Param{Pos: position(p)}
		if p.Declarator != nil {
			param.Name, param.Type = b.declarator(base, p.Declarator)
			param.Pos = position(p.Declarator.NameTok())
		} else {
			param.Type = b.abstract(base, p.AbstractDeclarator)
		}
		switch param.Type.Kind {
		case model.Array:
			param.Type = pointer(param.Type.Elem, false)
		case model.Function:
			param.Type = pointer(param.Type, false)
		case model.Void:
			if param.Name == "" && len(f.Params) == 0 && l.ParameterList == nil && !f.Variadic {
				return t // (void)
			}
			refuse(p, "a parameter of type void")
		}
		b.complete(param.Type, p)
		if param.Name != "" && f.Param(param.Name) != nil {
			refuse(p, "two parameters are called %s", param.Name)
		}
		f.Params = append(f.Params, param)
	}
	return t
}

// complete refuses types that have no size where one is needed.
func (b *builder) complete(t *model.Type, at cc.Node) {
	switch t.Kind {
	case model.Void:
		refuse(at, "void has no values")
	case model.Function:
		refuse(at, "a function is not an object: is a * missing?")
	case model.Array:
		if t.Len == unknownLen {
			refuse(at, "an array without a length")
		}
		b.complete(t.Elem, at)
	case model.Struct, model.Union:
		if t.Record.Incomplete {
			refuse(at, "%s is declared but not defined", t.Name)
		}
	}
}
