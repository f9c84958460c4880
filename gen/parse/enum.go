package parse

import (
	"math"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// enumSpec reads "enum tag {...}", "enum {...}" or "enum tag".
func (b *builder) enumSpec(n *cc.EnumSpecifier, own bool, doc string) *model.Type {
	tag := n.Token2.SrcStr()
	name := ""
	if tag != "" {
		name = "enum " + tag
	}
	if n.EnumTypeSpecifier != nil {
		refuse(n, "an enumeration with a type of its own is not C11")
	}
	if n.Case == cc.EnumSpecifierTag {
		e := b.enums[name]
		if e == nil {
			refuse(n, "%s is not defined before this line", name)
		}
		return enumType(e, name)
	}
	if old := b.enums[name]; old != nil {
		refuse(n, "%s is defined before, at %v", name, old.Pos)
	}
	e := &model.Enum{Name: name, Tag: tag, Size: 4, Doc: doc, Pos: position(n)}
	for l := n.EnumeratorList; l != nil; l = l.EnumeratorList {
		c := l.Enumerator
		v := &model.EnumValue{Name: c.Token.SrcStr(), Pos: position(c.Token)}
		v.Doc = b.doc(v.Pos, v.Pos)
		var ok bool
		switch x := c.Value().(type) {
		case cc.Int64Value:
			v.Value, ok = int64(x), true
		case cc.UInt64Value:
			v.Value, ok = int64(x), x <= math.MaxUint32
		}
		if !ok || v.Value < math.MinInt32 || v.Value > math.MaxUint32 {
			refuse(c.Token, "the value of %s is not a 32-bit constant", v.Name)
		}
		if p, dup := b.names[v.Name]; dup {
			refuse(c.Token, "%s is declared twice, first at %v", v.Name, p)
		}
		b.names[v.Name] = v.Pos
		e.Signed = e.Signed || v.Value < 0
		e.Values = append(e.Values, v)
	}
	for _, v := range e.Values {
		if e.Signed && v.Value > math.MaxInt32 {
			refuse(n, "%s does not fit beside the negative values", v.Name)
		}
	}
	if name != "" {
		b.enums[name] = e
	}
	if own {
		b.unit.Enums = append(b.unit.Enums, e)
	}
	return enumType(e, name)
}

func enumType(e *model.Enum, name string) *model.Type {
	return &model.Type{Kind: model.Enumeration, Name: name, Size: e.Size, Align: e.Size, Enum: e}
}
