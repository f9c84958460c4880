package parse

import (
	"modernc.org/cc/v4"
	"weft/gen/model"
)

// recordSpec reads "struct tag {...}", "struct {...}" or "struct tag".
func (b *builder) recordSpec(n *cc.StructOrUnionSpecifier, own bool, doc string) *model.Type {
	union := n.StructOrUnion.Case == cc.StructOrUnionUnion
	tag := n.Token.SrcStr()
	r := &model.Record{Tag: tag, Union: union, Incomplete: true, Pos: position(n)}
	if tag != "" {
		r.Name = r.TagName()
		if known := b.records[r.Name]; known != nil {
			r = known
		} else {
			b.records[r.Name] = r
		}
	}
	if n.Case == cc.StructOrUnionSpecifierDef {
		if !r.Incomplete {
			refuse(n, "%s is defined before, at %v", r.Name, r.Pos)
		}
		r.Pos, r.Doc = position(n), doc
		b.fields(r, n, own)
		witness(r, n)
		if tag != "" && own {
			b.unit.Records = append(b.unit.Records, r)
		}
	}
	kind := model.Struct
	if union {
		kind = model.Union
	}
	return &model.Type{Kind: kind, Name: r.TagName(), Size: r.Size, Align: r.Align, Record: r}
}

// fields reads the members of a record and lays them out.
func (b *builder) fields(r *model.Record, n *cc.StructOrUnionSpecifier, own bool) {
	var aligns []int64
	for l := n.StructDeclarationList; l != nil; l = l.StructDeclarationList {
		d := l.StructDeclaration
		if d.Case == cc.StructDeclarationAssert {
			continue
		}
		if d.SpecifierQualifierList == nil {
			refuse(d, "%s is not declared: a member has no type", firstWord.FindString(b.rest(position(d))))
		}
		if d.Token.SrcStr() != ";" {
			refuse(d, "the member does not end in ;")
		}
		s := b.qualSpecs(d.SpecifierQualifierList, d, own)
		doc := b.doc(position(d), position(d.Token))
		if d.StructDeclaratorList == nil {
			b.anonymous(r, s, d, doc)
		}
		for m := d.StructDeclaratorList; m != nil; m = m.StructDeclaratorList {
			sd := m.StructDeclarator
			if sd.Case == cc.StructDeclaratorBitField {
				refuse(sd, "a bit-field: its place is up to the compiler")
			}
			f := &model.Field{Doc: doc, Pos: position(sd.Declarator.NameTok())}
			f.Name, f.Type = b.declarator(s.typ, sd.Declarator)
			b.complete(f.Type, sd)
			r.Fields = append(r.Fields, f)
		}
		for len(aligns) < len(r.Fields) {
			aligns = append(aligns, s.align)
		}
	}
	if len(r.Fields) == 0 {
		refuse(n, "a record without members: C and C++ disagree on its size")
	}
	seen := map[string]model.Pos{}
	for _, f := range flat(r) {
		if p, dup := seen[f.Name]; dup {
			panic(&Refusal{Pos: f.Pos, What: "member " + f.Name + " is declared twice, first at " + p.String()})
		}
		seen[f.Name] = f.Pos
	}
	layOut(r, aligns)
	r.Incomplete = false
}

// anonymous adds a struct or union whose members count as the record's own.
func (b *builder) anonymous(r *model.Record, s specs, d *cc.StructDeclaration, doc string) {
	t := s.typ
	if t.Record == nil || t.Record.Tag != "" || t.Name != "" {
		refuse(d, "a member without a name")
	}
	r.Fields = append(r.Fields, &model.Field{Type: t, Doc: doc, Pos: position(d)})
}
