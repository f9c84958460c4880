package parse

import (
	"strings"

	"weft/gen/model"
)

// comments are the comments of one header, by line.
type comments struct {
	above  map[int]comment // whole-line comments, by their last line
	beside map[int]comment // comments behind code, by their line
}

type comment struct {
	text  string
	first int // line
	col   int
}

// doc returns what is said about a declaration that begins and ends at these
// places: the comment on the lines above it, or else the one behind it.
func (b *builder) doc(first, last model.Pos) string {
	if !b.own(first) {
		return ""
	}
	cs := b.comments[first.File]
	if cs == nil {
		cs = scan(b.over.readAll(first.File))
		b.comments[first.File] = cs
	}
	var parts []string
	for line := first.Line - 1; ; {
		c, ok := cs.above[line]
		if !ok {
			break
		}
		parts = append([]string{c.text}, parts...)
		line = c.first - 1
	}
	if c, ok := cs.beside[last.Line]; ok && len(parts) == 0 {
		parts = append(parts, c.text)
	}
	return strings.Join(parts, " ")
}

// rest returns a line of a header from a place on.
func (b *builder) rest(p model.Pos) string {
	l := b.over.line(p)
	return l[min(len(l), max(p.Col-1, 0)):]
}

// scan finds the comments of a source text. A // comment that continues one
// behind code, at the same column or further right, belongs to that.
func scan(text string) *comments {
	cs := &comments{above: map[int]comment{}, beside: map[int]comment{}}
	line, start, code := 1, 0, false
	tail := 0 // line of the code whose trailing comment may continue
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			line, start, code = line+1, i+1, false
		case c == '"' || c == '\'':
			code = true
			for i++; i < len(text) && text[i] != c && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i < len(text) && text[i] == '\n' {
				i--
			}
		case c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*'):
			raw, n := text[i:], 0
			if text[i+1] == '/' {
				if n = strings.IndexByte(raw, '\n'); n < 0 {
					n = len(raw)
				}
			} else if n = strings.Index(raw[2:], "*/"); n < 0 {
				n = len(raw)
			} else {
				n += 4
			}
			k := comment{text: clean(raw[:n]), first: line, col: i - start}
			t, continues := cs.beside[tail]
			switch {
			case code:
				cs.beside[line], tail = k, line
			case continues && tail == line-1 && raw[1] == '/' && k.col >= t.col:
				t.text += " " + k.text
				cs.beside[tail] = t
				delete(cs.above, line)
				cs.beside[line], tail = comment{text: t.text, first: line, col: t.col}, line
			default:
				k.first = line
				cs.above[line+strings.Count(raw[:n], "\n")] = k
			}
			line += strings.Count(raw[:n], "\n")
			if nl := strings.LastIndexByte(raw[:n], '\n'); nl >= 0 {
				start = i + nl + 1
			}
			i += n - 1
		case c != ' ' && c != '\t' && c != '\r':
			code = true
		}
	}
	return cs
}

// clean reduces a comment to its words.
func clean(raw string) string {
	raw = strings.TrimPrefix(raw, "//")
	if s, ok := strings.CutPrefix(raw, "/*"); ok {
		raw = strings.TrimSuffix(s, "*/")
	}
	var words []string
	for _, l := range strings.Split(raw, "\n") {
		l = strings.TrimSpace(l)
		l = strings.TrimSpace(strings.TrimLeft(l, "*"))
		words = append(words, strings.Fields(l)...)
	}
	return strings.Join(words, " ")
}
