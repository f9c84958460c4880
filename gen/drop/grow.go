package drop

import (
	"fmt"
	"io/fs"
	"sort"
	"strings"

	"weft/gen/lock"
	"weft/gen/model"
)

// growth is what an enumeration of ours gains.
type growth struct {
	enum   *model.Enum
	values []*model.EnumValue
}

// growAll adds new values to the headers that declare the enumerations, the
// last in a file first, so that the lines before it stay where they are.
func (rep *report) growAll(headers fs.FS, texts map[string]string) error {
	sort.SliceStable(rep.grown, func(i, j int) bool {
		p, q := rep.grown[i].enum.Pos, rep.grown[j].enum.Pos
		if p.File != q.File {
			return p.File < q.File
		}
		return p.Line > q.Line
	})
	for _, g := range rep.grown {
		file := g.enum.Pos.File
		text, ok := texts[file]
		if !ok {
			b, err := fs.ReadFile(headers, file)
			if err != nil {
				return fmt.Errorf("drop: %w", err)
			}
			text = string(b)
		}
		texts[file] = grow(text, g.enum, g.values)
	}
	return rep.growMacros(headers, texts)
}

// growMacros adds new macros to the header that all versions include.
func (rep *report) growMacros(headers fs.FS, texts map[string]string) error {
	if len(rep.macros) == 0 {
		return nil
	}
	const file = "nccl/common.h"
	text, ok := texts[file]
	if !ok {
		b, err := fs.ReadFile(headers, file)
		if err != nil {
			return fmt.Errorf("drop: %w", err)
		}
		text = string(b)
	}
	var b strings.Builder
	for _, m := range rep.macros {
		fmt.Fprintf(&b, "#define %s %s\n", m.Name, value(m))
	}
	end := strings.LastIndex(text, "#endif")
	if end < 0 {
		return fmt.Errorf("drop: headers/%s has no #endif", file)
	}
	texts[file] = text[:end] + b.String() + "\n" + text[end:]
	return nil
}

// grow adds values to an enumeration in the text of one of our headers, before
// the counter at its end, if there is one.
func grow(text string, e *model.Enum, values []*model.EnumValue) string {
	lines := strings.Split(text, "\n")
	last := e.Values[len(e.Values)-1]
	at := last.Pos.Line - 1
	if at < 0 || at >= len(lines) {
		return text
	}
	var added []string
	top := last.Value
	for _, v := range values {
		added = append(added, fmt.Sprintf("  %s = %d,", v.Name, v.Value))
		top = max(top, v.Value+1)
	}
	if lock.Counter(last.Name) {
		lines[at] = strings.Replace(lines[at], fmt.Sprintf("%s = %d", last.Name, last.Value), fmt.Sprintf("%s = %d", last.Name, top), 1)
	} else {
		added[len(added)-1] = strings.TrimSuffix(added[len(added)-1], ",")
		end := len(lines[at])
		if i := strings.Index(lines[at], "/*"); i >= 0 {
			end = i
		}
		said := strings.TrimRight(lines[at][:end], " ")
		lines[at] = said + "," + lines[at][len(said):]
		at++
	}
	out := append([]string(nil), lines[:at]...)
	out = append(out, added...)
	return strings.Join(append(out, lines[at:]...), "\n")
}
