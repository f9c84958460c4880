package parse

import (
	"sort"
	"strings"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// macros lists the object-like macros of the headers; include guards, which
// are empty, are left out.
func (b *builder) macros(ast *cc.AST) {
	for _, m := range ast.Macros {
		pos := model.Pos{File: m.Position().Filename, Line: m.Position().Line, Col: m.Position().Column}
		if m.IsFnLike || !b.own(pos) {
			continue
		}
		var text strings.Builder
		for i, t := range m.ReplacementList() {
			if i > 0 && len(t.Sep()) > 0 {
				text.WriteByte(' ')
			}
			text.Write(t.Src())
		}
		mm := &model.Macro{Name: m.Name.SrcStr(), Kind: model.MacroText, Text: strings.TrimSpace(text.String()), Pos: pos, Doc: b.doc(pos, pos)}
		if !m.IsConst {
			b.refused = append(b.refused, &Refusal{Pos: pos, What: "macro " + mm.Name + " is defined twice, with different values"})
			continue
		}
		if mm.Text == "" {
			continue
		}
		switch v := m.Value().(type) {
		case cc.Int64Value:
			mm.Kind, mm.Int = model.MacroInt, int64(v)
		case cc.UInt64Value:
			mm.Kind, mm.Uint = model.MacroUint, uint64(v)
		case cc.StringValue:
			mm.Kind, mm.Str = model.MacroString, strings.TrimSuffix(string(v), "\x00")
		}
		b.unit.Macros = append(b.unit.Macros, mm)
	}
	sort.Slice(b.unit.Macros, func(i, j int) bool { return b.before(b.unit.Macros[i].Pos, b.unit.Macros[j].Pos) })
}
